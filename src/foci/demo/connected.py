"""Neighbouring tiles, connected components of tiles, and region growing."""

from __future__ import annotations

import heapq
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

Neighbours = list[list[int]]
"""For every tile the indices of the tiles that touch it, by a side or a corner."""


def neighbours(cells: NDArray[Any]) -> Neighbours:
    """The 8-neighbours of every tile, for tiles given as (column, row).

    >>> neighbours(np.array([[0, 0], [1, 1], [5, 0]]))
    [[1], [0], []]
    """
    near = KDTree(cells).query_ball_point(cells, r=1, p=np.inf)
    return [[other for other in own if other != tile] for tile, own in enumerate(near)]


def pieces(touching: Neighbours) -> NDArray[np.int64]:
    """Connected component of every tile, numbered from 0 in tile order.

    >>> pieces([[2], [], [0]]).tolist()
    [0, 1, 0]
    """
    ends = np.cumsum([0, *map(len, touching)])
    others = np.fromiter(chain.from_iterable(touching), dtype=np.int64, count=ends[-1])
    graph = csr_array((np.ones(len(others)), others, ends), shape=(len(touching),) * 2)
    numbers: NDArray[np.int64] = connected_components(graph, directed=False)[1].astype(np.int64)
    return numbers


def grow(
    touching: Neighbours, seed: int, appeal: NDArray[Any], size: int, within: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Grow a region from ``seed``, at each step by its most appealing neighbour.

    The region is connected at every step, and smaller than ``size`` only where ``within`` ends.
    Written by hand because no library does it: flooding in SciPy has neither an order nor a size.

    Args:
        touching: Neighbours of every tile.
        seed: First tile.
        appeal: ``[N]``, higher joins earlier; the lower tile index breaks ties.
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
