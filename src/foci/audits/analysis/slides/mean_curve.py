"""Mean reveal curve over a cohort, with a band, for one ranking."""

from __future__ import annotations

from collections import Counter
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
    alike = Counter(curve.ks.astype(np.int64).tobytes() for curve in curves)
    measured = [np.frombuffer(ks, dtype=np.int64) for ks in alike]
    times = np.array(list(alike.values()))
    each = np.repeat(times, [len(ks) for ks in measured])
    shared = np.bincount(np.concatenate(measured), weights=each)
    ending = np.bincount([ks[-1] for ks in measured], weights=times)
    reaching = np.cumsum(ending[::-1])[::-1]
    return np.flatnonzero((shared == reaching) & (shared > 0))


def spread_over_slides(ks: Integers, tables: Sequence[Floats]) -> MeanCurve:
    """Mean and quartiles over slides of ``[S, G]`` tables, averaged over seeds first."""
    each = np.mean(tables, axis=0)
    low, high = np.quantile(each, [0.25, 0.75], axis=0)
    return MeanCurve(ks, each.mean(axis=0), low, high)


def spread_over_orders(ks: Integers, tables: Sequence[Floats]) -> MeanCurve:
    """Mean, minimum and maximum over random orders of the cohort mean of ``[S, G]`` tables."""
    means = np.stack([table.mean(axis=0) for table in tables])
    return MeanCurve(ks, means.mean(axis=0), means.min(axis=0), means.max(axis=0))
