"""What the classifier says of a tile that is alone."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal.embedded_bag import EmbeddedBag
from foci.reveal.subsets import BUDGET


@ranking("single-tile", needs=("target",))
def single_tile(bag: EmbeddedBag, *, budget: int = BUDGET) -> Tensor:
    r"""The target's probability when the tile is the whole bag, :math:`p_t(\{i\})`.

    Args:
        bag: The bag.
        budget: Most tokens forwarded at once; of no effect for pooling classifiers.
    """
    index = torch.arange(len(bag), device=bag.tokens.device)
    nobody = torch.zeros(len(bag), dtype=torch.bool, device=index.device)
    return bag.probability(bag.candidates(budget).adding(nobody, index))
