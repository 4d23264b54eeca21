"""The map of a slide as a small picture, whatever the number of its tiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TOP = 255
"""Grey value of the tile with the largest score; 0 is a pixel without a tile."""


def map_raster(
    scores: NDArray[np.float64], coords: NDArray[np.int64], tile_size: int, width: int
) -> NDArray[np.uint8]:
    """Draw the tiles of a slide into a picture, the most important the brightest.

    Only ranks are drawn, whatever the scale of the scores: brightness falls with the logarithm of
    the rank, so that the first tiles differ most, and equal scores are equally bright. Where
    several tiles fall into one pixel the most important is seen, so that no hot spot disappears,
    and a tile that is smaller than a pixel still fills one.

    Args:
        scores: ``[N]`` finite scores, the most important tile has the largest.
        coords: ``[N, 2]`` top-left corners x, y in any unit.
        tile_size: Side of a tile in the same unit.
        width: Pixels from the leftmost to the rightmost edge of the tiles; the height follows.

    Returns:
        ``[height, width]`` from 1 to 255, and 0 where no tile lies.

    >>> corners = np.array([[0, 0], [256, 0], [256, 256]])
    >>> map_raster(np.array([0.1, 0.7, 0.3]), corners, tile_size=256, width=2).tolist()
    [[1, 255], [0, 95]]
    """
    corners = coords - coords.min(axis=0)
    extent = corners.max(axis=0) + tile_size
    scale = width / extent[0]
    height = max(1, int(np.ceil(extent[1] * scale)))
    rank = 1 + len(scores) - np.searchsorted(np.sort(scores), scores, side="right")
    shade = np.rint(TOP - (TOP - 1) * np.log(rank) / np.log(max(len(scores), 2))).astype(np.uint8)
    first = np.floor(corners * scale + 1e-9).astype(np.int64)
    last = np.maximum(np.ceil((corners + tile_size) * scale - 1e-9).astype(np.int64), first + 1)
    picture = np.zeros((height, width), dtype=np.uint8)
    # all tiles at once, one offset within a tile at a time: a tile has few pixels
    wide, high = (last - first).max(axis=0)
    for down in range(int(high)):
        for right in range(int(wide)):
            inside = (first[:, 0] + right < last[:, 0]) & (first[:, 1] + down < last[:, 1])
            rows = np.minimum(first[inside, 1] + down, height - 1)
            columns = np.minimum(first[inside, 0] + right, width - 1)
            np.maximum.at(picture, (rows, columns), shade[inside])
    return picture
