"""Rank by the target's probability when a tile is the whole bag."""

from __future__ import annotations

from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.candidates.forwarded import BUDGET


@ranking("single-tile", needs=("target",))
def single_tile(bag: EmbeddedBag, *, budget: int = BUDGET) -> Tensor:
    r"""The target's probability when the tile is the whole bag, :math:`p_t(\{i\})`.

    Args:
        bag: The bag.
        budget: Most tokens forwarded at once; has no effect for pooling classifiers.
    """
    return bag.probability(bag.single_tiles(budget))
