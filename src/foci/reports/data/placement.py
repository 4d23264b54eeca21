"""Pack tile positions as steps of a lattice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foci.reports.data.models import TilePlacement
from foci.reports.data.packing import pack

FINEST = 12
"""Bits of a position: 1/4096 of the slide's longer side is finer than any screen."""

EXACT = 31
"""Bits of a position that can be magnified."""


def place(coords: NDArray[np.int64], patch_size: int | None, finest: int = FINEST) -> TilePlacement:
    """Pack tile corners as whole steps from the top left; exact if the tiles lie on a lattice.

    Args:
        coords: ``[N, 2]`` top-left corners.
        patch_size: Side of a tile in the same unit; None for the most common spacing of tiles.
        finest: Bits that a position may take.

    Returns:
        Packed ``x`` and ``y``, the ``origin`` and ``step`` that give the corners back as
        ``origin + step * x``, the ``side`` of a tile in the unit of the corners, and whether
        this is ``exact``.

    >>> placed = place(np.array([[512, 0], [768, 256], [512, 512]]), patch_size=256)
    >>> placed.origin, placed.step, placed.side, placed.exact
    ((512, 0), 256, 256, True)
    """
    origin = coords.min(axis=0)
    offsets = coords - origin
    step = int(np.gcd.reduce(offsets, axis=None)) or (patch_size or 1)
    limit = (1 << finest) - 1
    exact = int(offsets.max()) // step <= limit
    if not exact:
        step = -(-int(offsets.max()) // limit)
    x, y = np.rint(offsets / step).astype(np.int64).T
    return TilePlacement(
        x=pack(x),
        y=pack(y),
        origin=(int(origin[0]), int(origin[1])),
        step=step,
        side=patch_size or _spacing(offsets),
        exact=exact,
    )


def _spacing(offsets: NDArray[np.int64]) -> int:
    """Most common distance between neighbouring columns or rows of tiles."""
    gaps = np.concatenate([np.diff(np.unique(axis)) for axis in offsets.T])
    if not len(gaps):
        return 1
    values, counts = np.unique(gaps, return_counts=True)
    return int(values[counts.argmax()])
