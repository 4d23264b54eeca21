"""Compare two rankings slide by slide: who needs fewer tiles, with an interval over patients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.inputs import Floats
from foci.metrics.stats import mean_intervals

AxisResult = Literal["better", "worse", "same", "unclear"]
"""Outcome of a comparison on one axis."""

SAME_WITHIN = 0.1
SAME_CASES = 20
DIFFERENT_CASES = 6
AREA_TIE = 0.01
ROUNDING = 1e-12  # means over ten orders are no binary fractions


@dataclass(frozen=True)
class OrderComparison:
    """Ranking A against ranking B on one axis.

    Attributes:
        d: Mean over slides of +1 (A is ahead), -1 (B is ahead) and 0; NaN without slides.
        low: Lower end of its interval.
        high: Upper end of its interval.
        n_slides: Slides compared.
        n_cases: Patients they come from.
        n_differ: Patients whose slides do not sum to 0.
        result: ``"same"`` where the interval lies within +-0.1 and there are at least 20 patients;
            else ``"better"`` or ``"worse"`` where it excludes 0 and at least 6 patients differ;
            else ``"unclear"``.
    """

    d: float
    low: float
    high: float
    n_slides: int
    n_cases: int
    n_differ: int
    result: AxisResult


def order_differences(a: ArrayLike, b: ArrayLike, tie: float = 0.0) -> Floats:
    """Per slide +1 where ranking A needs fewer tiles than B, -1 where it needs more, else 0.

    A missing count is infinite; two missing counts are equal. Several orders of a ranking (random
    orders, seeds) are compared one by one, and the slide's differences are averaged.

    Args:
        a: ``[S]`` or ``[R, S]`` counts, NaN where there is none.
        b: The same slides under the other ranking, ``[S]`` or ``[R', S]``.
        tie: Counts that differ by at most this are equal.

    >>> order_differences([1, 5, np.nan, np.nan], [[2, 5, 7, np.nan], [1, 6, np.nan, 3]]).tolist()
    [0.5, 0.5, -0.5, -0.5]
    """
    first, second = (
        np.where(np.isnan(table), np.inf, table)
        for table in (count_orders(a, "a"), count_orders(b, "b"))
    )
    inputs.same_length(a=first[0], b=second[0])
    fewer, more = _gaps(first, second, tie)
    wins: Floats = (fewer.astype(float) - more).mean(axis=(0, 1))
    return wins


def count_orders(values: ArrayLike, name: str) -> Floats:
    """Check counts of one order or several, ``[R, S]``; NaN where a slide has none."""
    several = np.ndim(inputs.numbers(values, name, ndim=None, missing=True)) == 2
    return np.atleast_2d(inputs.counts(values, name, ndim=2 if several else 1))


def _gaps(first: Floats, second: Floats, tie: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """``[R, R', S]`` where the first lies below, and above, the second by more than ``tie``."""
    inputs.require(0 <= tie < math.inf, "tie", f"is {tie}", "pass 0 or more")
    left, right = first[:, None], second[None]
    margin = tie + ROUNDING
    return left < right - margin, left > right + margin


@card(
    title="Net share of slides won",
    symbol=r"D",
    equation=r"|S|^{-1} \sum_{s \in S} \big(\mathbf{1}[a_s < b_s] - \mathbf{1}[a_s > b_s]\big), "
    r"\quad \text{a missing count being } \infty",
    direction="higher",
    range=(-1.0, 1.0),
    needs="tile counts of every slide under two rankings, NaN where there is none",
    does_not_show="by how many tiles: that is the ratio of geometric means",
    source="FOCI; the numerator of the sign test",
)
def net_win_share(a: ArrayLike, b: ArrayLike, tie: float = 0.0) -> float:
    r"""Share of slides on which ranking A needs fewer tiles than B, minus the share with more.

    .. math:: D = |S|^{-1} \sum_{s \in S}
       \big(\mathbf{1}[a_s < b_s] - \mathbf{1}[a_s > b_s]\big)

    with missing counts as infinity; over several orders the differences of a slide are averaged.
    Arguments as in :func:`order_differences`.

    >>> net_win_share([1, 2, 3, np.nan], [4, 4, 1, np.nan])
    0.25
    """
    return float(order_differences(a, b, tie).mean())


def compare_orders(
    a: ArrayLike,
    b: ArrayLike,
    cases: Sequence[Any] | NDArray[Any],
    *,
    n_boot: int = 2000,
    level: float = 0.95,
    tie: float = 0.0,
    seed: int = 0,
) -> OrderComparison:
    """Compare two rankings by tile counts: :func:`net_win_share`, its interval, and a result.

    Patients are resampled as in :func:`foci.metrics.case_means`; comparisons of the same slides
    with the same seed use the same draws.

    Args:
        a: ``[S]`` or ``[R, S]`` counts, NaN where there is none.
        b: The same slides under the other ranking, ``[S]`` or ``[R', S]``.
        cases: The patient of every slide.
        n_boot: Bootstrap draws.
        level: Coverage of the interval.
        tie: Counts that differ by at most this are equal.
        seed: Seeds the draws.

    >>> compare_orders([1] * 12, [2] * 12, cases=range(12)).result
    'better'
    >>> compare_orders([1] * 12, [2] * 7 + [1] * 5, cases=range(12)).n_differ
    7
    """
    return _compare(order_differences(a, b, tie), cases, n_boot, level, seed)


def compare_areas(
    a: ArrayLike,
    b: ArrayLike,
    cases: Sequence[Any] | NDArray[Any],
    *,
    n_boot: int = 2000,
    level: float = 0.95,
    tie: float = AREA_TIE,
    seed: int = 0,
) -> OrderComparison:
    """Compare two rankings by their deletion areas: the larger area is ahead.

    As :func:`compare_orders`, with :func:`foci.metrics.slide_faithfulness` instead of counts. A
    slide without an area, its bag being too small, is left out; without any slide the result is
    ``"unclear"``.

    Args:
        a: ``[S]`` or ``[R, S]`` areas, NaN where a slide has none.
        b: The same slides under the other ranking, ``[S]`` or ``[R', S]``.
        cases: The patient of every slide.
        n_boot: Bootstrap draws.
        level: Coverage of the interval.
        tie: Areas that differ by at most this are equal.
        seed: Seeds the draws.

    >>> compare_areas([0.5] * 20, [0.495] * 20, cases=range(20)).result
    'same'
    """
    first, second = (
        np.atleast_2d(inputs.numbers(values, name, ndim=None, missing=True))
        for values, name in ((a, "a"), (b, "b"))
    )
    for table, name in ((first, "a"), (second, "b")):
        fix = "pass one area per slide, or [R, S]"
        inputs.require(table.ndim == 2, name, f"has {table.ndim} dimensions", fix)
    n_slides = inputs.same_length(a=first[0], b=second[0])
    inputs.same_length(a=first[0], cases=cases)
    known = np.flatnonzero(~(np.isnan(first).any(axis=0) | np.isnan(second).any(axis=0)))
    smaller, larger = _gaps(first, second, tie)
    wins = (larger.astype(float) - smaller).mean(axis=(0, 1))
    patients = cases if len(known) == n_slides else [cases[int(row)] for row in known]
    return _compare(wins[known], patients, n_boot, level, seed)


def _compare(
    wins: Floats, cases: Sequence[Any] | NDArray[Any], n_boot: int, level: float, seed: int
) -> OrderComparison:
    """The comparison from one difference per slide."""
    if not wins.size:
        return OrderComparison(math.nan, math.nan, math.nan, 0, 0, 0, "unclear")
    interval = mean_intervals(wins[:, None], cases, n_boot=n_boot, level=level, seed=seed)[0]
    names, case = np.unique(np.asarray(cases), return_inverse=True)
    n_differ = int((np.abs(np.bincount(case, weights=wins)) > ROUNDING * len(wins)).sum())
    result: AxisResult = "unclear"
    within = max(-interval.low, interval.high) <= SAME_WITHIN + ROUNDING
    if within and len(names) >= SAME_CASES:
        result = "same"
    elif n_differ >= DIFFERENT_CASES and interval.above(ROUNDING):
        result = "better"
    elif n_differ >= DIFFERENT_CASES and interval.below(-ROUNDING):
        result = "worse"
    return OrderComparison(
        d=interval.estimate,
        low=interval.low,
        high=interval.high,
        n_slides=len(wins),
        n_cases=len(names),
        n_differ=n_differ,
        result=result,
    )
