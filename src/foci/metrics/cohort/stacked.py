"""Curves of a whole cohort at once: the definitions of the metrics over stacked arrays.

Slides whose curves share their counts are stacked, so that nothing is padded and a cohort costs a
handful of array operations. Every number is the one that the function of a single curve gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from foci.errors import FociError
from foci.metrics import inputs
from foci.metrics.curve.censoring import restricted_mean
from foci.metrics.curve.deletion import PAPER_COUNTS
from foci.metrics.curve.specificity import comes_first
from foci.metrics.curve.stability import settled_from
from foci.metrics.curve.sufficiency import (
    area_over_counts,
    aukc,
    first_crossing,
    followed_class,
    msk,
    msk_cond,
    reach,
    sufficient_steps,
)
from foci.metrics.curve.target import runners_up
from foci.metrics.inputs import Floats, Integers

BLOCK = 1024  # slides per stack: 256 counts of two classes are 4 MB


@dataclass(frozen=True, eq=False)
class Stack:
    """Slides whose curves were measured at the same counts.

    Attributes:
        rows: ``[B]`` positions of these slides in the cohort.
        ks: ``[K]`` their counts.
        probs: ``[B, K, C]`` class probabilities.
    """

    rows: Integers
    ks: Integers
    probs: Floats


def stack(
    probs: Sequence[ArrayLike], ks: Sequence[ArrayLike], *, lowest: int = 1
) -> tuple[Stack, ...]:
    """Sort curves by their counts; a curve without any count is in no stack.

    >>> one, two = [[0.5, 0.5]], [[0.5, 0.5], [0.1, 0.9]]
    >>> [s.rows.tolist() for s in stack([two, one, two], [[1, 2], [1], [1, 2]])]
    [[0, 2], [1]]
    """
    inputs.same_length(probs=probs, ks=ks)
    alike: dict[bytes, list[int]] = {}
    for row, counts in enumerate(ks):
        alike.setdefault(np.asarray(counts, dtype=np.int64).tobytes(), []).append(row)
    stacks = []
    for key, rows in alike.items():
        counts = np.frombuffer(key, dtype=np.int64)
        for start in range(0, len(rows) if counts.size else 0, BLOCK):
            block = rows[start : start + BLOCK]
            table = inputs.probabilities([np.asarray(probs[row]) for row in block], ndim=3)
            counts = inputs.increasing(counts, table.shape[1], lowest=lowest)
            stacks.append(Stack(np.array(block), counts, table))
    return tuple(stacks)


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """One order of many slides, ``[S]`` each; NaN where a count is not reached.

    Attributes:
        msk: :func:`foci.metrics.msk`.
        stable: :func:`foci.metrics.stable_msk`.
        aukc: :func:`foci.metrics.aukc`.
        specific: 1 where the target is reached before its rival, else 0.
    """

    msk: Floats
    stable: Floats
    aukc: Floats
    specific: Floats


def operating_points(
    stacks: Sequence[Stack], full: Floats, targets: Integers, kappa: float = 0.9
) -> OperatingPoints:
    """Where every insertion curve becomes sufficient, and the area under it.

    Args:
        stacks: Insertion curves of the S slides.
        full: ``[S, C]`` full-bag probabilities.
        targets: ``[S]`` the class followed on each slide.
        kappa: Operating confidence.

    >>> curves = stack([[[0.6, 0.4], [0.05, 0.95]], [[0.5, 0.5]]], [[1, 2], [1]])
    >>> full = np.array([[0.1, 0.9], [0.5, 0.5]])
    >>> operating_points(curves, full, np.array([1, 1])).msk
    array([ 2., nan])
    """
    threshold = inputs.threshold(kappa)
    found = np.full((4, len(targets)), np.nan)
    for part in stacks:
        target = targets[part.rows]
        steps = sufficient_steps(part.probs, target, threshold)
        rival_steps = sufficient_steps(part.probs, runners_up(full[part.rows], target), threshold)
        count = first_crossing(steps, part.ks)
        found[:, part.rows] = (
            count,
            settled_from(steps, part.ks),
            area_over_counts(followed_class(part.probs, target), part.ks),
            comes_first(count, first_crossing(rival_steps, part.ks)),
        )
    return OperatingPoints(*found)


def on_grid(stacks: Sequence[Stack], targets: Integers, grid: Integers) -> Floats:
    """Probability of the target at every count of a grid, ``[S, G]``.

    Between its counts and after its last one a curve keeps its value.
    """

    def held(part: Stack) -> Floats:
        last = np.searchsorted(part.ks, grid, side="right") - 1
        return followed_class(part.probs, targets[part.rows])[:, np.maximum(last, 0)]

    return _fill(stacks, (len(targets), len(grid)), held)


def drops_on_grid(
    stacks: Sequence[Stack], full: Floats, targets: Integers, grid: Integers
) -> Floats:
    """:func:`foci.metrics.deletion_drop` at every count of a grid, ``[S, G]``.

    NaN where a slide was not measured: without all its tiles there is no prediction.
    """

    def lost(part: Stack) -> Floats:
        target = targets[part.rows]
        whole = np.take_along_axis(full[part.rows], target[:, None], axis=1)
        return _at(whole - followed_class(part.probs, target), part.ks, grid)

    return _fill(stacks, (len(targets), len(grid)), lost)


def slide_faithfulness(drops: Floats, n_tiles: Integers) -> Floats:
    """:func:`foci.metrics.faithfulness_auc` of every slide, from drops at the paper's counts.

    A bag of N tiles has no drop at K >= N: its area runs to the last count below N and is divided
    by it. NaN where fewer than two counts are left, or one of them was not measured.

    Args:
        drops: ``[S, 5]``, :func:`drops_on_grid` at 16, 32, 64, 128 and 256.
        n_tiles: ``[S]`` candidate tiles.

    >>> drops = np.array([[0.25, 0.5, np.nan, np.nan, np.nan]] * 2)
    >>> slide_faithfulness(drops, n_tiles=np.array([40, 20]))
    array([0.1875,    nan])
    """
    counts = np.array(PAPER_COUNTS)
    below = (counts < np.asarray(n_tiles)[:, None]).sum(axis=1)
    areas = np.full(len(drops), np.nan)
    for n in range(2, len(counts) + 1):
        areas[below == n] = area_over_counts(drops[below == n, :n], counts[:n])
    return areas


def probabilities_at(stacks: Sequence[Stack], n_classes: int, wanted: Integers) -> Floats:
    """:func:`foci.metrics.probability_at` for one count per slide, ``[S, C]``.

    NaN where a curve does not hold the count.
    """

    def found(part: Stack) -> Floats:
        place = np.minimum(np.searchsorted(part.ks, wanted[part.rows]), len(part.ks) - 1)
        values = part.probs[np.arange(len(part.rows)), place]
        return np.where((part.ks[place] == wanted[part.rows])[:, None], values, np.nan)

    return _fill(stacks, (len(wanted), n_classes), found)


def _fill(
    stacks: Sequence[Stack], shape: tuple[int, int], measure: Callable[[Stack], Floats]
) -> Floats:
    table = np.full(shape, np.nan)
    for part in stacks:
        table[part.rows] = measure(part)
    return table


def _at(values: Floats, ks: Integers, grid: Integers) -> Floats:
    """Columns of ``[B, K]`` at the counts of a grid; NaN for a count that is not there."""
    place = np.minimum(np.searchsorted(ks, grid), len(ks) - 1)
    return np.where(ks[place] == grid, values[:, place], np.nan)


T = TypeVar("T")

PAPER_KAPPAS = (0.7, 0.8, 0.9, 0.95)


def cohort_msk(
    probs: Sequence[ArrayLike],
    ks: Sequence[ArrayLike],
    targets: Sequence[int],
    kappa: float = 0.9,
    *,
    per_slide: Callable[..., int | None] = msk,
) -> Floats:
    """MSK of every slide as float64, NaN where it is not reached.

    Args:
        probs: One ``[len(ks), C]`` array per slide.
        ks: One array of reveal counts per slide.
        targets: The class followed on each slide.
        kappa: Operating confidence.
        per_slide: :func:`foci.metrics.msk` or :func:`foci.metrics.stable_msk`.

    >>> cohort_msk([[[0.05, 0.95]], [[0.4, 0.6], [0.3, 0.7]]], [[1], [1, 2]], targets=[1, 1])
    array([ 1., nan])
    """
    inputs.same_length(probs=probs, ks=ks, targets=targets)
    values = per_curve(lambda i: per_slide(probs[i], ks[i], targets[i], kappa), len(probs))
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def cohort_aukc(
    probs: Sequence[ArrayLike],
    ks: Sequence[ArrayLike],
    n_tiles: Sequence[int],
    targets: Sequence[int],
) -> float:
    """The paper's AUKC: the mean of :func:`foci.metrics.aukc` over slides.

    >>> cohort_aukc([[[0.25, 0.75]], [[0.5, 0.5]]], [[1], [1]], n_tiles=[1, 1], targets=[1, 1])
    0.625
    """
    inputs.same_length(probs=probs, ks=ks, n_tiles=n_tiles, targets=targets)
    return float(
        np.mean(per_curve(lambda i: aukc(probs[i], ks[i], n_tiles[i], targets[i]), len(probs)))
    )


@dataclass(frozen=True)
class SweepRow:
    """One row of the paper's threshold table, with the mean that does not drop failures."""

    kappa: float
    msk_cond: float
    reach: float
    restricted_mean: float


def kappa_sweep(
    probs: Sequence[ArrayLike],
    ks: Sequence[ArrayLike],
    targets: Sequence[int],
    kappas: Sequence[float] = PAPER_KAPPAS,
    k_max: int = 256,
) -> tuple[SweepRow, ...]:
    """MSK and Reach at several thresholds from the same stored curves.

    >>> rows = kappa_sweep([[[0.25, 0.75], [0.05, 0.95]]], [[1, 2]], [1], kappas=(0.7, 0.9, 0.99))
    >>> [(row.msk_cond, row.reach, row.restricted_mean) for row in rows]
    [(1.0, 1.0, 1.0), (2.0, 1.0, 2.0), (nan, 0.0, 256.0)]
    """
    rows = []
    for kappa in kappas:
        msks = cohort_msk(probs, ks, targets, kappa)
        rows.append(SweepRow(kappa, msk_cond(msks), reach(msks), restricted_mean(msks, k_max)))
    return tuple(rows)


def per_curve(measure: Callable[[int], T], n_slides: int) -> list[T]:
    """Measure every slide in turn; a refusal says which curve it was."""
    values = []
    for index in range(n_slides):
        try:
            values.append(measure(index))
        except FociError as error:
            where = f"curve {index}, {error.where}"
            raise FociError(where, error.what, error.fix) from error
    return values
