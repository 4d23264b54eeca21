"""Deletion drops and Faithfulness AUC of a whole cohort at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cohort.stacked import Stack, fill
from foci.metrics.curve.areas import area_over_counts
from foci.metrics.curve.deletion import PAPER_COUNTS, drops_from_full
from foci.metrics.inputs import Floats, Integers, defined_mean


def drops_on_grid(
    stacks: Sequence[Stack], full: ArrayLike, targets: ArrayLike, grid: ArrayLike = PAPER_COUNTS
) -> Floats:
    """:func:`foci.metrics.deletion_drop` of every slide at every count of a grid, ``[S, G]``.

    NaN where a slide was not measured: a bag of N tiles has no drop at K >= N, for without any
    tile there is no prediction.

    Args:
        stacks: Deletion curves of the S slides, stacked with ``lowest=0``.
        full: ``[S, C]`` full-bag probabilities.
        targets: ``[S]`` the class followed on each slide.
        grid: ``[G]`` deletion counts.

    >>> from foci.metrics import stack
    >>> curves = stack([[[0.5, 0.5], [0.75, 0.25]], [[0.5, 0.5]]], [[16, 32], [16]], lowest=0)
    >>> drops_on_grid(curves, full=[[0.25, 0.75]] * 2, targets=[1, 1], grid=[16, 32])
    array([[0.25, 0.5 ],
           [0.25,  nan]])
    """
    whole = inputs.probabilities(full, "full")
    followed = inputs.class_indices(targets, "targets", whole.shape[1])
    n_slides = inputs.same_length(full=whole, targets=followed)
    wanted = inputs.increasing(grid, lowest=0, name="grid")

    def lost(part: Stack) -> Floats:
        drops = drops_from_full(whole[part.rows], part.probs, followed[part.rows])
        place = np.minimum(np.searchsorted(part.ks, wanted), len(part.ks) - 1)
        return np.where(part.ks[place] == wanted, drops[:, place], np.nan)

    return fill(stacks, (n_slides, len(wanted)), lost)


def mean_drops(drops: ArrayLike) -> tuple[Floats, Integers]:
    """Mean deletion drop at every count, over the slides that were measured there.

    Args:
        drops: ``[S, G]``, :func:`drops_on_grid`.

    Returns:
        The means (NaN where no slide was measured), and the number of slides behind each.

    >>> means, n = mean_drops([[0.25, 0.5], [0.75, np.nan]])
    >>> means.tolist(), n.tolist()
    ([0.5, 0.5], [2, 1])
    """
    table = inputs.numbers(drops, "drops", ndim=2, missing=True)
    return defined_mean(table, axis=0), (~np.isnan(table)).sum(axis=0)


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
