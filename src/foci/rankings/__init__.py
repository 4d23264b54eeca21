"""Rankings: one score per tile of a bag; the higher, the earlier it is revealed.

``registry`` holds what all have in common, every other module registers some. Names are loaded on
first use: reading stored scores needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foci.rankings.controls import random_controls
    from foci.rankings.minimal import minimal_set
    from foci.rankings.ranking import Ranking
    from foci.rankings.registry import (
        RANKINGS,
        Need,
        RankingMethod,
        RequestedRanking,
        available,
        requested,
        score,
    )
    from foci.reveal import EmbeddedBag

__all__ = [
    "RANKINGS",
    "EmbeddedBag",
    "Need",
    "Ranking",
    "RankingMethod",
    "RequestedRanking",
    "available",
    "minimal_set",
    "random_controls",
    "requested",
    "score",
]

_METHODS = ("controls", "evidence", "from_file", "gradient", "minimal", "search")
"""Importing them registers the rankings."""

_MODULES = {
    "EmbeddedBag": "foci.reveal.bag",
    "Ranking": "foci.rankings.ranking",
    "minimal_set": "foci.rankings.minimal",
    "random_controls": "foci.rankings.controls",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'foci.rankings' has no attribute {name!r}")
    if name not in ("EmbeddedBag", "Ranking"):
        for method in _METHODS:
            importlib.import_module(f"foci.rankings.{method}")
    module = importlib.import_module(_MODULES.get(name, "foci.rankings.registry"))
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
