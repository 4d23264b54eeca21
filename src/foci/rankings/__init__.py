"""Rankings: one score per tile of a bag; the higher, the earlier it is revealed.

Names are loaded on first use: reading stored scores needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foci.lazy import lazy_names

if TYPE_CHECKING:
    from foci.rankings.methods import (
        RANKINGS,
        Need,
        RankingMethod,
        RequestedRanking,
        available,
        random_controls,
        requested,
        score,
    )
    from foci.rankings.registry import Ranking
    from foci.reveal import EmbeddedBag

__all__ = [
    "RANKINGS",
    "EmbeddedBag",
    "Need",
    "Ranking",
    "RankingMethod",
    "RequestedRanking",
    "available",
    "random_controls",
    "requested",
    "score",
]

_HOMES = {"EmbeddedBag": "foci.reveal.bag", "Ranking": "foci.rankings.registry"}

__getattr__, __dir__ = lazy_names(
    "foci.rankings", {name: _HOMES.get(name, "foci.rankings.methods") for name in __all__}
)
