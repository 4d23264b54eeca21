"""Tile spacing, estimated from the coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def spacing(coords: NDArray[Any]) -> float | None:
    """Most common distance between neighbours in one row or column; None if no two share one.

    Only tiles of the same row (or column) are compared: CLAM starts a new grid at every tissue
    contour, so that differences *between* contours are arbitrary.

    >>> spacing(np.array([[7, 0], [519, 0], [1031, 0], [30, 4], [542, 4]]))
    512.0
    """
    steps = np.concatenate([_steps(coords, along=0), _steps(coords, along=1)])
    if not len(steps):
        return None
    values, counts = np.unique(steps, return_counts=True)
    return float(values[np.argmax(counts)])


def share_on_grid(coords: NDArray[Any], step: float) -> float:
    """Share of neighbouring pairs whose distance is a multiple of ``step``."""
    steps = np.concatenate([_steps(coords, along=0), _steps(coords, along=1)])
    if not len(steps):
        return 1.0
    remainder = np.abs(steps / step - np.round(steps / step))
    return float(np.mean(remainder < 0.01))


def _steps(coords: NDArray[Any], along: int) -> NDArray[Any]:
    across = 1 - along
    order = np.lexsort((coords[:, along], coords[:, across]))
    line, position = coords[order, across], coords[order, along]
    step = np.diff(position)
    steps: NDArray[Any] = step[(np.diff(line) == 0) & (step > 0)]
    return steps
