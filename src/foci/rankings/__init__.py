"""Rankings: one score per tile of a bag; the higher, the earlier it is revealed.

``registry`` holds what all have in common, every other module registers some. Names that need torch
are loaded on first use: reading stored scores needs none.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foci.errors import FociError

if TYPE_CHECKING:
    from foci.rankings.controls import random_controls
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
    "random_controls",
    "requested",
    "score",
]

_METHODS = ("controls", "evidence", "from_file", "gradient", "search")
"""Importing them registers the rankings."""

_MODULES = {
    "EmbeddedBag": "foci.reveal.bag",
    "random_controls": "foci.rankings.controls",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'foci.rankings' has no attribute {name!r}")
    if name != "EmbeddedBag":
        for method in _METHODS:
            importlib.import_module(f"foci.rankings.{method}")
    module = importlib.import_module(_MODULES.get(name, "foci.rankings.registry"))
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True, eq=False)
class Ranking:
    """One score per tile, ``scores`` ``[N]`` in float64 and read-only; the highest comes first.

    >>> ranking = Ranking("native", "slide-1", np.array([0.5, 2.0, 0.5, -1.0]))
    >>> ranking.order.tolist()
    [1, 0, 2, 3]
    >>> ranking.ranks.tolist()
    [1, 0, 2, 3]
    >>> Ranking("native", "slide-1", np.array([0.5, np.nan]))
    Traceback (most recent call last):
    foci.errors.FociError: slide-1: the ranking 'native' is NaN at tile 1 (1 of 2 tiles); check ...
    """

    name: str
    slide_id: str
    scores: NDArray[np.float64]

    def __post_init__(self) -> None:
        scores = np.array(self.scores, dtype=np.float64)
        if scores.ndim != 1 or not len(scores):
            raise FociError(
                self.slide_id,
                f"the ranking {self.name!r} has shape {list(scores.shape)}",
                "give one score per tile",
            )
        bad = np.flatnonzero(np.isnan(scores))
        if len(bad):
            raise FociError(
                self.slide_id,
                f"the ranking {self.name!r} is NaN at tile {bad[0]} "
                f"({len(bad)} of {len(scores)} tiles)",
                "check the slide's features and the model's weights for NaN or Inf",
            )
        scores.flags.writeable = False
        object.__setattr__(self, "scores", scores)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def order(self) -> NDArray[np.int64]:
        """Tile indices from the highest score to the lowest; ties by tile index."""
        return np.argsort(-self.scores, kind="stable").astype(np.int64)

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Position of every tile in the order; 0 is revealed first."""
        ranks = np.empty(len(self), dtype=np.int64)
        ranks[self.order] = np.arange(len(self))
        return ranks
