"""Curves of a whole cohort at once: MSK, stable MSK, AUKC and specificity of every slide.

Slides whose curves share their counts are stacked, so that nothing is padded and a cohort costs a
handful of array operations. The definitions are those of :mod:`foci.metrics.curve`: ``msk`` and
the others apply them to one curve, this module to many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from foci.errors import FociError
from foci.metrics import inputs
from foci.metrics.curve.areas import area_over_counts
from foci.metrics.curve.specificity import comes_first
from foci.metrics.curve.stability import stable_from
from foci.metrics.curve.sufficiency import first_crossing, followed_class, sufficient_steps
from foci.metrics.curve.target import runners_up
from foci.metrics.inputs import Chosen, Floats, Integers

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
    """Stack the curves that share their counts; a curve without any count is in no stack.

    Args:
        probs: One ``[len(ks), C]`` array per slide.
        ks: One array of counts per slide.
        lowest: The smallest count allowed: 1 for insertion, 0 for deletion.

    >>> one, two = [[0.5, 0.5]], [[0.5, 0.5], [0.1, 0.9]]
    >>> [s.rows.tolist() for s in stack([two, one, two], [[1, 2], [1], [1, 2]])]
    [[0, 2], [1]]
    """
    inputs.same_length(probs=probs, ks=ks)
    alike: dict[tuple[str, bytes], list[int]] = {}
    for row, measured in enumerate(ks):
        counts = np.asarray(measured)
        alike.setdefault((counts.dtype.char, counts.tobytes()), []).append(row)
    stacks = []
    for rows in alike.values():
        counts = np.asarray(ks[rows[0]])
        for start in range(0, len(rows) if counts.size else 0, BLOCK):
            block = rows[start : start + BLOCK]
            try:
                table = inputs.probabilities([np.asarray(probs[row]) for row in block], ndim=3)
                shared = inputs.increasing(counts, table.shape[1], lowest=lowest)
            except (FociError, TypeError, ValueError, RuntimeError):
                _refuse_first(block, probs, counts, lowest)
                raise
            stacks.append(Stack(np.array(block), shared, table))
    return tuple(stacks)


def _refuse_first(
    rows: Sequence[int], probs: Sequence[ArrayLike], counts: ArrayLike, lowest: int
) -> None:
    """Raise what is wrong with the first bad curve, and say which curve it is."""
    for row in rows:
        try:
            inputs.curve(probs[row], counts, 0, lowest=lowest)
        except FociError as error:
            raise FociError(f"curve {row}, {error.where}", error.what, error.fix) from error


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """Metrics of every slide under one ranking, ``[S]`` each; a count is NaN where not reached.

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

    def of(self, slides: Chosen) -> OperatingPoints:
        """Metrics of some slides."""
        return OperatingPoints(
            self.msk[slides], self.stable[slides], self.aukc[slides], self.specific[slides]
        )


def operating_points(
    stacks: Sequence[Stack],
    full: ArrayLike,
    targets: ArrayLike,
    kappa: float | ArrayLike = 0.9,
) -> OperatingPoints:
    """MSK, stable MSK, AUKC and specificity of every slide of a cohort.

    Args:
        stacks: Insertion curves of the S slides.
        full: ``[S, C]`` full-bag probabilities.
        targets: ``[S]`` the class followed on each slide.
        kappa: Operating confidence, one for all slides or one per slide.

    >>> curves = stack([[[0.6, 0.4], [0.05, 0.95]], [[0.5, 0.5]]], [[1, 2], [1]])
    >>> operating_points(curves, full=[[0.1, 0.9], [0.5, 0.5]], targets=[1, 1]).msk
    array([ 2., nan])
    """
    whole = inputs.probabilities(full, "full")
    followed = inputs.class_indices(targets, "targets", whole.shape[1])
    n_slides = inputs.same_length(full=whole, targets=followed)
    needed = inputs.thresholds(kappa, n_slides)
    found = np.full((4, n_slides), np.nan)
    for part in stacks:
        target, threshold = followed[part.rows], needed[part.rows]
        steps = sufficient_steps(part.probs, target, threshold)
        rival_steps = sufficient_steps(part.probs, runners_up(whole[part.rows], target), threshold)
        count = first_crossing(steps, part.ks)
        found[:, part.rows] = (
            count,
            stable_from(steps, part.ks),
            area_over_counts(followed_class(part.probs, target), part.ks),
            comes_first(count, first_crossing(rival_steps, part.ks)),
        )
    return OperatingPoints(*found)


def first_counts(stacks: Sequence[Stack], targets: Integers, kappas: Floats) -> Floats:
    """MSK of every slide at several thresholds, ``[T, S]``; NaN where not reached.

    Args:
        stacks: Insertion curves of the S slides.
        targets: ``[S]`` the class followed on each slide.
        kappas: ``[T, S]`` operating confidence of each slide at each threshold.

    >>> curves = stack([[[0.6, 0.4], [0.05, 0.95]], [[0.5, 0.5]]], [[1, 2], [1]])
    >>> first_counts(curves, np.array([1, 0]), np.array([[0.9, 0.9], [0.5, 0.5]]))
    array([[ 2., nan],
           [ 2.,  1.]])
    """
    counts = np.full(kappas.shape, np.nan)
    for part in stacks:
        steps = sufficient_steps(part.probs, targets[part.rows], kappas[:, part.rows])
        counts[:, part.rows] = first_crossing(steps, part.ks)
    return counts


def on_grid(stacks: Sequence[Stack], targets: Integers, grid: Integers) -> Floats:
    """Probability of the target at every count of a grid, ``[S, G]``.

    Between its counts, and after its last one, a curve holds its value.
    """

    def held(part: Stack) -> Floats:
        last = np.searchsorted(part.ks, grid, side="right") - 1
        return followed_class(part.probs, targets[part.rows])[:, np.maximum(last, 0)]

    return fill(stacks, (len(targets), len(grid)), held)


def fill(
    stacks: Sequence[Stack], shape: tuple[int, int], measure: Callable[[Stack], Floats]
) -> Floats:
    """Rows of every stack in the order of the cohort; NaN for a slide that is in no stack."""
    table = np.full(shape, np.nan)
    for part in stacks:
        table[part.rows] = measure(part)
    return table
