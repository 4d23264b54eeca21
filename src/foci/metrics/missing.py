"""Means over what is defined."""

from __future__ import annotations

import numpy as np

from foci.metrics.inputs import Floats


def defined_mean(values: Floats, axis: int | None = None) -> Floats:
    """Mean over the values that are not NaN; NaN where all of them are.

    >>> defined_mean(np.array([[1.0, np.nan], [3.0, np.nan]]), axis=0).tolist()
    [2.0, nan]
    """
    known = ~np.isnan(values)
    sums, n = np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis)
    means: Floats = np.divide(sums, n, out=np.full(np.shape(sums), np.nan), where=n > 0)
    return means
