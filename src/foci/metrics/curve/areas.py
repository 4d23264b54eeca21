"""Areas under reveal and deletion curves: the trapezoid rule and its error."""

from __future__ import annotations

import numpy as np
from scipy.integrate import trapezoid

from foci.metrics.inputs import Floats, Integers

STRAY = 0.05
"""How far, on average, counts that were left out may lie outside the range of those around them."""


def area_over_counts(values: Floats, ks: Integers, divisor: int | None = None) -> Floats:
    """Trapezoid rule over the counts for every row of ``[..., K]``; a single value as it is.

    Args:
        values: One value per count.
        ks: ``[K]`` counts.
        divisor: What the area is divided by; None for the last count.
    """
    if len(ks) == 1:
        return values[..., 0]
    area: Floats = trapezoid(values, ks, axis=-1) / (ks[-1] if divisor is None else divisor)
    return area


def area_error(values: Floats, ks: Integers) -> Floats:
    r"""Bound on the error of :func:`area_over_counts` on a grid, against the area over every count.

    .. math:: \frac{1}{K_m} \sum_j (K_{j+1} - K_j - 1) \min\Big(1,\; \sigma +
       \max_{j-1 \le i \le j+2} p(K_i) - \min_{j-1 \le i \le j+2} p(K_i)\Big)

    It holds for every curve whose counts that were left out lie, on average, at most
    :math:`\sigma = 0.05` outside the range of the four counts around them; no bound without such an
    assumption is of use, because one more tile may change any answer. 0 where no count was left
    out.

    Args:
        values: ``[..., K]``, one value per count.
        ks: ``[K]`` counts.

    >>> import numpy as np
    >>> round(float(area_error(np.array([0.25, 0.5, 0.5, 0.75]), np.array([1, 2, 4, 8]))), 5)
    0.18125
    """
    if len(ks) == 1:
        return np.zeros(values.shape[:-1])
    ends = np.concatenate([values[..., :1], values, values[..., -1:]], axis=-1)
    around = np.stack([ends[..., start : len(ks) - 1 + start] for start in range(4)])
    reach = np.minimum(1.0, around.max(axis=0) - around.min(axis=0) + STRAY)
    error: Floats = (reach * (np.diff(ks) - 1)).sum(axis=-1) / ks[-1]
    return error
