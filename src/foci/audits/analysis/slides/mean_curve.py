"""Mean reveal curve over a cohort, with a band, for one ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foci.metrics.inputs import Floats, Integers
from foci.reveal import Curve


@dataclass(frozen=True, eq=False)
class MeanCurve:
    """Mean probability of the target at every count, with a band.

    Attributes:
        ks: ``[G]`` counts.
        mean: Mean over the slides.
        low: Lower end of the band.
        high: Upper end of the band.
    """

    ks: Integers
    mean: Floats
    low: Floats
    high: Floats


def common_counts(curves: Sequence[Curve]) -> Integers:
    """Counts that every slide has, as far as its own counts go.

    A smaller slide keeps its last value beyond its own counts.
    """
    last = np.array([curve.ks[-1] for curve in curves])
    counts, shared = np.unique(np.concatenate([curve.ks for curve in curves]), return_counts=True)
    reaching = (last[:, None] >= counts).sum(axis=0)
    common: Integers = counts[shared == reaching]
    return common


def spread_over_slides(ks: Integers, tables: Sequence[Floats]) -> MeanCurve:
    """Mean and quartiles over slides of ``[S, G]`` tables, averaged over seeds first."""
    each = np.mean(tables, axis=0)
    low, high = np.quantile(each, [0.25, 0.75], axis=0)
    return MeanCurve(ks, each.mean(axis=0), low, high)


def spread_over_orders(ks: Integers, tables: Sequence[Floats]) -> MeanCurve:
    """Mean, minimum and maximum over random orders of the cohort mean of ``[S, G]`` tables."""
    means = np.stack([table.mean(axis=0) for table in tables])
    return MeanCurve(ks, means.mean(axis=0), means.min(axis=0), means.max(axis=0))
