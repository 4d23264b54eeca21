"""Connected sets of tiles: which tiles touch, which hang together, and growing a region."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

Neighbours = list[list[int]]
"""For every tile the indices of the tiles that touch it, side or corner."""

_AROUND = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0)]


def neighbours(cells: NDArray[Any]) -> Neighbours:
    """Who touches whom, for tiles given as (column, row).

    >>> neighbours(np.array([[0, 0], [1, 1], [5, 0]]))
    [[1], [0], []]
    """
    places: list[tuple[int, int]] = [(int(x), int(y)) for x, y in cells]
    index = {place: tile for tile, place in enumerate(places)}
    return [
        [index[x + dx, y + dy] for dx, dy in _AROUND if (x + dx, y + dy) in index]
        for x, y in places
    ]


def pieces(touching: Neighbours) -> NDArray[np.int64]:
    """Number of the connected piece that each tile belongs to, counted from 0 in tile order.

    >>> pieces([[2], [], [0]]).tolist()
    [0, 1, 0]
    """
    piece: dict[int, int] = {}
    number = -1
    for first in range(len(touching)):
        if first in piece:
            continue
        number += 1
        piece[first] = number
        waiting = [first]
        while waiting:
            for tile in touching[waiting.pop()]:
                if tile not in piece:
                    piece[tile] = number
                    waiting.append(tile)
    return np.array([piece[tile] for tile in range(len(touching))], dtype=np.int64)


def grow(
    touching: Neighbours, seed: int, appeal: NDArray[Any], size: int, within: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """The region that grows from ``seed`` by its most appealing neighbour, tile by tile.

    It is connected at every step; it stays smaller than ``size`` only where ``within`` ends.

    Args:
        touching: Neighbours of every tile.
        seed: First tile.
        appeal: ``[N]``, higher joins earlier; ties by tile index.
        size: Number of tiles wanted.
        within: ``[N]`` bool, the tiles that may join.

    Returns:
        ``[N]`` bool.

    >>> line = [[1], [0, 2], [1, 3], [2]]
    >>> grow(line, 1, np.array([0, 9, 5, 7]), 3, np.ones(4, dtype=bool)).tolist()
    [False, True, True, True]
    """
    region = np.zeros(len(touching), dtype=np.bool_)
    seen = {seed}
    waiting = [(-float(appeal[seed]), seed)]
    left = size
    while waiting and left:
        _, tile = heapq.heappop(waiting)
        region[tile] = True
        left -= 1
        for other in touching[tile]:
            if other not in seen and within[other]:
                seen.add(other)
                heapq.heappush(waiting, (-float(appeal[other]), other))
    return region
