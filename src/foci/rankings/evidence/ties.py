"""Share of tied scores at the head of a ranking."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from foci.errors import FociError


def tied_share(scores: ArrayLike, first: int = 32) -> float:
    r"""Share of the first tiles whose score another tile of the bag has too.

    .. math:: \frac1n \sum_{r \le n} \mathbf 1[\exists j \ne \pi(r): s_j = s_{\pi(r)}], \qquad
       n = \min(\mathrm{first}, N)

    Tiles with equal scores are revealed by tile index, which says nothing about the slide. A tie
    between the last of the first tiles and one behind them counts.

    Args:
        scores: ``[N]``, one per tile.
        first: How many tiles from the head of the ranking.

    >>> tied_share([1.0, 1.0, 0.5, 0.2], first=4)
    0.5
    >>> tied_share([0.9, 0.8, 0.8], first=2)
    0.5
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values) or np.isnan(values).any():
        raise FociError("scores", "are not one number per tile", "give at least one, and no NaN")
    if first < 1:
        raise FociError("first", f"is {first}", "count from at least one tile")
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    head = np.argsort(-values, kind="stable")[:first]
    return float((counts[place[head]] > 1).mean())
