"""Leave-one-out: how much the target's probability falls without a tile."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.candidates.forwarded import BUDGET


@ranking("leave-one-out", needs=("target",))
def leave_one_out(bag: EmbeddedBag, *, budget: int = BUDGET) -> Tensor:
    r"""The fall of the target's probability when the tile is removed.

    .. math:: s_i = p_t(\{1..N\}) - p_t(\{1..N\} \setminus \{i\})

    The tile is removed, not zeroed. A bag without tiles has no prediction and counts as
    :math:`1/C`, so the only tile of a bag scores :math:`p_t - 1/C`.

    Args:
        bag: The bag.
        budget: Most tokens forwarded at once; has no effect for pooling classifiers.
    """
    candidates = bag.candidates(budget)
    full = bag.probability(candidates.full())
    if len(bag) == 1:
        return (full - 1 / bag.backbone.n_classes).reshape(1)
    index = torch.arange(len(bag), device=bag.tokens.device)
    every_tile = torch.ones(len(bag), dtype=torch.bool, device=index.device)
    return full - bag.probability(candidates.removing(every_tile, index))
