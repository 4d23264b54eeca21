"""The curve of a cohort: what a figure draws for one ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foci.metrics.inputs import Floats, Integers
from foci.reveal import Curve


@dataclass(frozen=True, eq=False)
class MeanCurve:
    """Probability of the target over the counts, with a band.

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
    """The counts of the slide with the most tiles; a smaller slide keeps its last value."""
    return max(curves, key=lambda curve: curve.n_tiles).ks


def spread_over_slides(ks: Integers, tables: Sequence[Floats]) -> MeanCurve:
    """Mean and quartiles over the slides of ``[S, G]``, after the mean over the seeds."""
    each = np.mean(tables, axis=0)
    low, high = np.quantile(each, [0.25, 0.75], axis=0)
    return MeanCurve(ks, each.mean(axis=0), low, high)


def spread_over_orders(ks: Integers, tables: Sequence[Floats]) -> MeanCurve:
    """Mean, smallest and largest cohort mean over random orders, each ``[S, G]``."""
    means = np.stack([table.mean(axis=0) for table in tables])
    return MeanCurve(ks, means.mean(axis=0), means.min(axis=0), means.max(axis=0))
