"""Compare two rankings: who needs fewer tiles, slide by slide, and how many tiles are saved.

SHI compares conditional means, and each ranking may reach other slides; :func:`paired_msk` keeps to
the slides that both reach.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve import reached
from foci.metrics.inputs import Counts, Floats
from foci.metrics.stats import (
    MIN_DRAWS,
    case_means,
    case_numbers,
    percentiles,
    sign_flip_pvalue,
)

AxisResult = Literal["better", "worse", "same", "unclear"]
"""Outcome of a comparison on one axis."""

SAME_WITHIN = 0.1
SAME_CASES = 20
AREA_TIE = 0.01
ROUNDING = 1e-12  # means over ten orders are no binary fractions
EPS = 1e-8
PSEUDO_PATIENTS = (1.0, -1.0)
"""Added to the patients that an interval is drawn from: where nearly all patients agree, the drawn
means alone would hardly differ, and 95 % intervals of 12 patients would cover 71 %."""


@dataclass(frozen=True)
class NetShare:
    """Ranking A against ranking B on one axis.

    Attributes:
        d: Mean over patients of the patient's mean over slides of +1 (A is ahead), -1 (B is ahead)
            and 0; NaN without slides.
        low, high: Its interval; patients and two pseudo-patients, at +1 and -1, are resampled.
        pvalue: Of the sign-flip test over patients.
        n_slides, n_cases: Slides compared, and the patients they come from.
        wins, losses: Slides on which A, or B, is ahead.
        case_wins, case_losses: Patients on whose slides A, or B, is ahead on average.
        result: ``"same"`` where the interval lies within +-0.1 and there are at least 20 patients;
            else ``"better"`` or ``"worse"`` where the test rejects; else ``"unclear"``. Fewer than
            six patients that differ never reject at a level of 0.95, and fewer than 28 are never
            the same there: the pseudo-patients alone span more than +-0.1.
    """

    d: float
    low: float
    high: float
    pvalue: float
    n_slides: int
    n_cases: int
    wins: int
    losses: int
    case_wins: int
    case_losses: int
    result: AxisResult


def order_differences(a: ArrayLike, b: ArrayLike, tie: float = 0.0) -> Floats:
    """Per slide +1 where ranking A needs fewer tiles than B, -1 where it needs more, else 0.

    A missing count (NaN) is infinite; two missing counts are equal, and so are counts that differ
    by at most ``tie``. Several orders of a ranking, ``[R, S]`` (random orders, seeds), are compared
    one by one, and the slide's differences are averaged.

    >>> order_differences([1, 5, np.nan, np.nan], [[2, 5, 7, np.nan], [1, 6, np.nan, 3]]).tolist()
    [0.5, 0.5, -0.5, -0.5]
    """
    first, second = (
        np.where(np.isnan(table), np.inf, table)
        for table in (inputs.count_orders(a, "a"), inputs.count_orders(b, "b"))
    )
    inputs.same_length(a=first[0], b=second[0])
    fewer, more = _gaps(first, second, tie)
    wins: Floats = (fewer.astype(float) - more).mean(axis=(0, 1))
    return wins


def _gaps(first: Floats, second: Floats, tie: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """``[R, R', S]`` where the first lies below, and above, the second by more than ``tie``."""
    inputs.require(0 <= tie < math.inf, "tie", f"is {tie}", "pass 0 or more")
    left, right = first[:, None], second[None]
    margin = tie + ROUNDING
    return left < right - margin, left > right + margin


@card(
    title="Net share of slides won",
    symbol=r"D",
    direction="higher",
    range=(-1.0, 1.0),
    needs="tile counts of every slide under two rankings, NaN where there is none, and patients",
    does_not_show="by how many tiles: that is the ratio of geometric means",
    source="FOCI; the statistic of the sign-flip test",
)
def net_win_share(
    a: ArrayLike,
    b: ArrayLike,
    cases: Sequence[Any] | NDArray[Any] | None = None,
    tie: float = 0.0,
) -> float:
    r"""Share of slides on which ranking A needs fewer tiles than B, minus the share with more.

    .. math:: D = |P|^{-1} \sum_{p \in P} |S_p|^{-1} \sum_{s \in S_p}
       \big(\mathbf{1}[a_s < b_s] - \mathbf{1}[a_s > b_s]\big),
       \quad \text{a missing count being } \infty

    The mean over patients P of the mean of :func:`order_differences` over the patient's slides.
    Without ``cases`` every slide is a patient of its own.

    >>> net_win_share([1, 2, 3, np.nan], [4, 4, 1, np.nan])
    0.25
    >>> net_win_share([1, 2, 3, np.nan], [4, 4, 1, np.nan], cases=["P1", "P1", "P2", "P2"])
    0.25
    >>> net_win_share([1, 2, 3, np.nan], [4, 4, 1, np.nan], cases=["P1", "P1", "P1", "P2"])
    0.16666666666666666
    """
    wins = order_differences(a, b, tie)
    return float(patient_means(wins, range(len(wins)) if cases is None else cases).mean())


def compare_orders(
    a: ArrayLike,
    b: ArrayLike,
    cases: Sequence[Any] | NDArray[Any],
    *,
    n_boot: int = 2000,
    level: float = 0.95,
    tie: float = 0.0,
    seed: int = 0,
) -> NetShare:
    """Compare two rankings by tile counts: who needs fewer, patient by patient, and a result.

    Counts as in :func:`order_differences`; ``cases`` ``[S]`` are the patients. Comparisons of as
    many patients with the same seed use the same draws.

    >>> compare_orders([1] * 12, [2] * 12, cases=range(12)).result
    'better'
    >>> found = compare_orders([1] * 12, [2] * 7 + [1] * 5, cases=range(12))
    >>> found.wins, found.losses, round(found.pvalue, 4)
    (7, 0, 0.0156)
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
) -> NetShare:
    """Compare two rankings by their deletion areas: the larger area is ahead.

    As :func:`compare_orders`, with :func:`foci.metrics.slide_faithfulness` instead of counts. A
    slide without an area (NaN), its bag being too small, is left out; without any slide the result
    is ``"unclear"``.

    >>> compare_areas([0.5] * 40, [0.495] * 40, cases=range(40)).result
    'same'
    """
    wins = area_differences(a, b, tie)
    inputs.same_length(a=wins, cases=cases)
    known = np.flatnonzero(~np.isnan(wins))
    patients = cases if len(known) == len(wins) else [cases[int(row)] for row in known]
    return _compare(wins[known], patients, n_boot, level, seed)


def area_differences(a: ArrayLike, b: ArrayLike, tie: float = AREA_TIE) -> Floats:
    """Per slide +1 where A's area is larger than B's, -1 where it is smaller, else 0.

    As :func:`order_differences`; NaN where an area is missing.

    >>> area_differences([0.5, 0.1, 0.2, np.nan], [[0.1, 0.1, 0.205, 0.1]])
    array([ 1.,  0.,  0., nan])
    """
    first, second = (
        np.atleast_2d(inputs.as_float_array(values, name, ndim=None, missing=True))
        for values, name in ((a, "a"), (b, "b"))
    )
    for table, name in ((first, "a"), (second, "b")):
        fix = "pass one area per slide, or [R, S]"
        inputs.require(table.ndim == 2, name, f"has {table.ndim} dimensions", fix)
    inputs.same_length(a=first[0], b=second[0])
    unknown = np.isnan(first).any(axis=0) | np.isnan(second).any(axis=0)
    smaller, larger = _gaps(first, second, tie)
    return np.where(unknown, np.nan, (larger.astype(float) - smaller).mean(axis=(0, 1)))


UNKNOWN = np.iinfo(np.int16).min


def each_against(maps: Floats, orders: Floats, tie: float) -> NDArray[np.int16]:
    """Orders ``[R, S]`` that every map ``[M, S]`` beats, minus those that beat it, ``[M, S]``.

    Over R they are :func:`area_differences`; ``UNKNOWN`` where an area is missing.

    >>> each_against(np.array([[0.5, 0.1, np.nan]]), np.array([[0.1, 0.2, 0.1]] * 3), tie=0.0)
    array([[     3,     -3, -32768]], dtype=int16)
    """
    unknown = np.isnan(maps) | np.isnan(orders).any(axis=0)
    smaller, larger = _gaps(maps, orders, tie)
    net = larger.sum(axis=1, dtype=np.int16) - smaller.sum(axis=1, dtype=np.int16)
    return np.where(unknown, np.int16(UNKNOWN), net)


def _compare(
    wins: Floats, cases: Sequence[Any] | NDArray[Any], n_boot: int, level: float, seed: int
) -> NetShare:
    """The comparison from one difference per slide."""
    if not wins.size:
        nan = math.nan
        return NetShare(nan, nan, nan, 1.0, 0, 0, 0, 0, 0, 0, "unclear")
    means = patient_means(wins, cases)
    d, n_cases, low, high = float(means.mean()), len(means), math.nan, math.nan
    if n_cases > 1:
        low, high = patient_intervals(means[:, None], n_boot, level, seed)[:, 0].tolist()
    pvalue = sign_flip_pvalue(means, seed)
    result: AxisResult = "unclear"
    if max(-low, high) <= SAME_WITHIN + ROUNDING and n_cases >= SAME_CASES:
        result = "same"
    elif pvalue <= 1 - level + ROUNDING:
        result = "better" if d > 0 else "worse"
    return NetShare(
        d=d,
        low=low,
        high=high,
        pvalue=pvalue,
        n_slides=len(wins),
        n_cases=n_cases,
        wins=int((wins > ROUNDING).sum()),
        losses=int((wins < -ROUNDING).sum()),
        case_wins=int((means > ROUNDING).sum()),
        case_losses=int((means < -ROUNDING).sum()),
        result=result,
    )


def patient_intervals(means: Floats, n_boot: int, level: float = 0.95, seed: int = 0) -> Floats:
    """Both ends of the interval of D, ``[2, M]``, from the patient means ``[C, M]`` of M cohorts.

    Patients and the two pseudo-patients are drawn with replacement. Every draw counts with the
    pseudo-patients in both places, so that the ends of negated means are the negated ends. NaN
    where there is one draw.
    """
    n_cohorts = means.shape[1]
    pseudo = np.repeat(np.array(PSEUDO_PATIENTS)[:, None], n_cohorts, axis=1)
    both = np.hstack([np.vstack([means, pseudo]), np.vstack([means, pseudo[::-1]])])
    draws = case_means(both, range(len(both)), n_boot, seed)
    if n_boot < MIN_DRAWS:
        return np.full((2, n_cohorts), np.nan)
    return percentiles(np.vstack([draws[:, :n_cohorts], draws[:, n_cohorts:]]), level)


def patient_means(values: Floats, cases: Sequence[Any] | NDArray[Any]) -> Floats:
    """Mean of values ``[S]`` or ``[M, S]`` over the slides of every patient, patients sorted.

    >>> patient_means(np.array([1.0, 3.0, 8.0]), cases=["P2", "P2", "P1"]).tolist()
    [8.0, 2.0]
    """
    case = case_numbers(cases, values.shape[-1])[1]
    sums = [np.bincount(case, weights=row) for row in np.atleast_2d(values)]
    means: Floats = (np.stack(sums) / np.bincount(case)).reshape(*values.shape[:-1], -1)
    return means


def relative_saving(base: Floats, foci: Floats, eps: float = EPS) -> Floats:
    """SHI of every pair of counts: ``(base - foci) / (base + eps)``."""
    return (base - foci) / (base + eps)


@card(
    title="Selection Headroom Index",
    symbol=r"\mathrm{SHI}",
    direction="higher",
    range=(-math.inf, 1.0),
    needs="conditional MSK of the native ranking and of the selector, one value per seed",
    does_not_show="that the selector beats a random order, or that it reaches as many slides",
    source="the paper, Eq. SHI",
)
def shi(base: ArrayLike, foci: ArrayLike, eps: float = EPS) -> float:
    r"""Relative saving of tiles against the backbone's own ranking, on means over seeds.

    .. math:: \mathrm{SHI} = (\overline{\mathrm{MSK}}_{base} - \overline{\mathrm{MSK}}_{foci}) /
       (\overline{\mathrm{MSK}}_{base} + \epsilon)

    The seeds are averaged first and the ratio is taken once, as in the paper's table. Near one
    tile the ratio explodes: read it beside the counts. ``base`` and ``foci`` are conditional MSK of
    the native ranking and of the selector, a number or one per seed.

    >>> round(shi(7.33, 3.21), 3)
    0.562
    >>> round(shi(base=[1.0, 1.2, 1.1], foci=[3.0, 3.4, 3.2]), 3)
    -1.909
    """
    before, after = inputs.mean_counts(base, "base").mean(), inputs.mean_counts(foci, "foci").mean()
    return float(relative_saving(np.asarray(before), np.asarray(after), eps))


@card(
    title="SHI against random",
    symbol=r"\mathrm{SHI}_{rand}",
    direction="higher",
    range=(-math.inf, 1.0),
    needs="conditional MSK of several seeded random orders and of the selector",
    does_not_show="how good the native ranking is; that is SHI",
    source="FOCI; a selector can beat a proxy ranking and still lose to chance",
)
def shi_against_random(random: ArrayLike, foci: ArrayLike, eps: float = EPS) -> float:
    r"""Relative saving of tiles against seeded random orders.

    .. math:: \mathrm{SHI}_{rand} = (\overline{\mathrm{MSK}}_{rand} -
       \overline{\mathrm{MSK}}_{foci}) / (\overline{\mathrm{MSK}}_{rand} + \epsilon)

    >>> shi(base=38.0, foci=17.0) > 0 > shi_against_random(random=[5.2, 4.8], foci=17.0)
    True
    """
    inputs.mean_counts(random, "random")
    return shi(random, foci, eps)


@card(
    title="Captured headroom",
    symbol=r"H",
    direction="higher",
    range=(-math.inf, math.inf),
    needs="mean tile counts of the native ranking, the selector and a greedy search",
    does_not_show="the true optimum: a greedy set is small, not proven smallest",
)
def captured_headroom(base: ArrayLike, foci: ArrayLike, greedy: ArrayLike) -> float:
    r"""Share of the tiles that could be saved which the selector does save.

    .. math:: H = (\mathrm{K}_{base} - \mathrm{K}_{foci}) / (\mathrm{K}_{base} -
       \mathrm{K}_{greedy})

    on means over seeds. 1 means as small as the greedy set, 0 no better than the native ranking.
    NaN where the greedy search found nothing smaller: there is no headroom to capture.

    >>> captured_headroom(base=9.0, foci=3.0, greedy=1.0)
    0.75
    """
    start, end, bound = (
        float(inputs.mean_counts(values, name).mean())
        for values, name in ((base, "base"), (foci, "foci"), (greedy, "greedy"))
    )
    return (start - end) / (start - bound) if start > bound else math.nan


@dataclass(frozen=True)
class PairedMSK:
    """Two rankings on the slides that both reach; NaN means if there is none."""

    base: float
    foci: float
    n_both: int
    n_base_only: int
    n_foci_only: int
    n_neither: int


@card(
    title="Paired MSK",
    symbol=r"\mathrm{MSK}_{\cap}",
    direction="lower",
    range=(0.0, math.inf),
    needs="MSK of every slide under two rankings",
    does_not_show="the slides only one of the rankings reaches, which are counted beside it",
)
def paired_msk(base: Counts, foci: Counts) -> PairedMSK:
    r"""Mean MSK of two rankings over the slides that both of them reach.

    .. math:: |B|^{-1} \sum_{s \in B} \mathrm{MSK}_s, \quad B = \{s : \text{both rankings reach}\}

    >>> paired_msk(base=[4, 6, 9, None], foci=[1, 3, None, None])
    PairedMSK(base=5.0, foci=2.0, n_both=2, n_base_only=1, n_foci_only=0, n_neither=1)
    """
    first, second = inputs.two_counts(base=base, foci=foci)
    in_first, in_second = reached(first), reached(second)
    both = in_first & in_second
    return PairedMSK(
        base=float(first[both].mean()) if both.any() else math.nan,
        foci=float(second[both].mean()) if both.any() else math.nan,
        n_both=int(both.sum()),
        n_base_only=int((in_first & ~in_second).sum()),
        n_foci_only=int((~in_first & in_second).sum()),
        n_neither=int((~in_first & ~in_second).sum()),
    )
