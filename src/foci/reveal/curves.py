"""Class probabilities of one slide under one ranking, at every count of tiles.

Nothing here needs torch: stored curves are read without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Direction = Literal["insert", "delete"]

K_MAX = 256
"""The paper's largest reveal count."""

KAPPA = 0.9
"""The paper's operating confidence."""

GRID = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Counts at which a classifier without a closed form is asked first."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One slide under one ranking, in one direction.

    Attributes:
        slide_id: The slide.
        ranking: Name of the ranking.
        seed: Of the selector or the random order; None where nothing is drawn.
        direction: ``"insert"`` reveals the first k tiles, ``"delete"`` removes them.
        n_tiles: Candidate tiles N.
        ks: ``[len(ks)]`` increasing counts.
        probs: ``[len(ks), C]`` class probabilities.
        full: ``[C]`` class probabilities of the full bag.
    """

    slide_id: str
    ranking: str
    seed: int | None
    direction: Direction
    n_tiles: int
    ks: NDArray[np.int64]
    probs: NDArray[np.float64]
    full: NDArray[np.float64]
