"""Class probabilities of one slide under one ranking, at every count of tiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foci.reveal.arguments import Direction


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
