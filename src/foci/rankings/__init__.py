"""Rankings: one score per tile of a bag; the higher, the earlier it is revealed.

``registry`` holds what all have in common, every other module registers some. Names that need torch
are loaded on first use: reading stored scores needs none.
"""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foci.errors import FociError

if TYPE_CHECKING:
    from foci.rankings.controls import random_controls
    from foci.rankings.minimal import minimal_is_exact, minimal_set
    from foci.rankings.registry import (
        RANKINGS,
        Need,
        RankingMethod,
        RequestedRanking,
        available,
        requested,
        requested_map,
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
    "minimal_is_exact",
    "minimal_set",
    "random_controls",
    "requested",
    "requested_map",
    "score",
]

_METHODS = ("controls", "evidence", "from_file", "gradient", "minimal", "search")
"""Importing them registers the rankings."""

_MODULES = {
    "EmbeddedBag": "foci.reveal.bag",
    "minimal_is_exact": "foci.rankings.minimal",
    "minimal_set": "foci.rankings.minimal",
    "random_controls": "foci.rankings.controls",
}

FIRST_TILES = 32
"""Tiles at the top of a ranking among which ties are counted."""

NULL_MAPS, SINGLE_SEEDS = "null-maps", "selector-seed"
"""What stands beside the rankings of an audit: content-free maps, and single selector seeds."""

_TIES = -1
"""Seed of the order among tied tiles, unlike that of any random order."""


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

    >>> ranking = Ranking("native", "slide-2", np.array([0.5, 2.0, 0.5, -1.0]))
    >>> ranking.order.tolist()
    [1, 2, 0, 3]
    >>> ranking.ranks.tolist()
    [2, 0, 1, 3]
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
        """Tile indices from the highest score to the lowest; ties in a seeded random order."""
        order = np.argsort(-self.scores, kind="stable")
        ordered = self.scores[order]
        if (ordered[1:] == ordered[:-1]).any():  # never by place in the file
            order = np.lexsort((uniform_scores(self.slide_id, len(self), _TIES), -self.scores))
        return order.astype(np.int64)

    @property
    def tied(self) -> float:
        """Share of the first 32 tiles that have the same score as another tile.

        >>> Ranking("native", "slide-1", np.array([3.0, 2.0, 1.0, 1.0])).tied
        0.5
        """
        ordered = np.concatenate([[np.nan], np.sort(self.scores)[::-1], [np.nan]])
        alike = (ordered[1:-1] == ordered[:-2]) | (ordered[1:-1] == ordered[2:])
        return float(alike[:FIRST_TILES].mean())

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Position of every tile in the order; 0 is revealed first."""
        ranks = np.empty(len(self), dtype=np.int64)
        ranks[self.order] = np.arange(len(self))
        return ranks


def uniform_scores(slide_id: str, n_tiles: int, seed: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) that depend on nothing but the arguments.

    Neither the machine nor a library version changes them: the raw stream of PCG64, which NumPy
    guarantees, is seeded with the SHA-256 of seed and slide name. (NumPy does not guarantee the
    stream of ``Generator.random``.)

    >>> uniform_scores("slide-1", 3, seed=0).round(4).tolist()
    [0.283, 0.1766, 0.1294]
    """
    digest = hashlib.sha256(f"{seed}\n{slide_id}".encode()).digest()
    raw = np.random.PCG64(int.from_bytes(digest, "big")).random_raw(n_tiles)
    return np.ldexp((raw >> np.uint64(11)).astype(np.float64), -53)
