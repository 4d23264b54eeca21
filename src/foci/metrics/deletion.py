"""Deletion drop and Faithfulness AUC: the full bag against the bag without its top K tiles.

``deletion_drop`` and ``faithfulness_auc`` take one slide, the functions below them a cohort.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve import Stack, area_over_counts, followed, followed_at
from foci.metrics.inputs import Floats, Integers, defined_mean

PAPER_COUNTS = (16, 32, 64, 128, 256)
"""Deletion counts of the paper's Faithfulness AUC."""


@card(
    title="Deletion drop",
    symbol=r"\Delta p(K)",
    direction="higher",
    range=(-1.0, 1.0),
    needs="full-bag probabilities and one deletion curve",
    does_not_show="that the remaining tiles could not decide alone, or that the top tiles can",
    source="the paper, deletion-based perturbation; after RISE (Petsiuk et al., 2018)",
)
def deletion_drop(
    full: ArrayLike, probs: ArrayLike, ks: ArrayLike, target: SupportsIndex
) -> Floats:
    r"""Loss of target probability when the top K tiles are removed, for every K.

    .. math:: \Delta p(K) = p_y(\text{full}) - p_y(\text{without the top } K)

    Negative where deleting the tiles makes the model more certain. K runs below N: without any
    tile there is no prediction.

    >>> deletion_drop([0.25, 0.75], [[0.5, 0.5], [0.75, 0.25]], ks=[16, 32], target=1).tolist()
    [0.25, 0.5]
    """
    curve, _, aim = inputs.curve(probs, ks, target, lowest=0)
    whole = inputs.full_bag(full, curve.shape[1])
    drops: Floats = whole[aim] - followed(curve, aim).confidence
    return drops


@card(
    title="Faithfulness AUC",
    symbol=r"\mathrm{Faith.\,AUC}",
    direction="higher",
    range=(-1.0, 1.0),
    needs="deletion drops at two or more counts, the paper's being 16, 32, 64, 128 and 256",
    does_not_show="sufficiency; an attention pool scores well because its ranking is its weight",
    source="the paper, Table deletion-based perturbation faithfulness",
)
def faithfulness_auc(ks: ArrayLike, drops: ArrayLike, k_max: SupportsIndex = 256) -> float:
    r"""Faithfulness AUC: trapezoid rule over the deletion drops, divided by K_max.

    .. math:: K_{\max}^{-1} \sum_j \tfrac12 (\Delta p(K_j) + \Delta p(K_{j+1}))(K_{j+1} - K_j)

    ``drops`` are :func:`deletion_drop` at the counts, of one slide or averaged over slides.

    >>> faithfulness_auc([16, 32, 64, 128, 256], [0.016, 0.023, 0.036, 0.058, 0.090])
    0.05365625
    """
    values = inputs.as_float_array(drops, "drops")
    counts = inputs.increasing(ks, len(values), lowest=0)
    ceiling = inputs.up_to(counts, k_max, "k_max")
    bounded = np.abs(values).max() <= 1
    inputs.require(bounded, "drops", "leaves [-1, 1]", "give differences of probabilities")
    inputs.require(len(counts) > 1, "ks", "has a single count", "an area needs two or more")
    return float(area_over_counts(values, counts, divisor=ceiling))


def drops_on_grid(
    stacks: Sequence[Stack], full: ArrayLike, targets: ArrayLike, grid: ArrayLike = PAPER_COUNTS
) -> Floats:
    """:func:`foci.metrics.deletion_drop` of every slide at every count of a grid, ``[S, G]``.

    NaN where a slide was not measured: a bag of N tiles has no drop at K >= N, for without any
    tile there is no prediction. From the deletion curves of the S slides, stacked with
    ``lowest=0``, their full-bag probabilities ``[S, C]`` and the class followed on each, ``[S]``.

    >>> from foci.metrics import stack
    >>> curves = stack([[[0.5, 0.5], [0.75, 0.25]], [[0.5, 0.5]]], [[16, 32], [16]], lowest=0)
    >>> drops_on_grid(curves, full=[[0.25, 0.75]] * 2, targets=[1, 1], grid=[16, 32])
    array([[0.25, 0.5 ],
           [0.25,  nan]])
    """
    full_probs, aims = inputs.full_bags(full, targets)
    wanted = inputs.increasing(grid, lowest=0, name="grid")
    whole = followed(full_probs, aims).confidence
    return whole[:, None] - followed_at(stacks, aims, wanted).confidence


def mean_drops(drops: ArrayLike) -> tuple[Floats, Integers]:
    """Mean of :func:`drops_on_grid` at every count, over the slides that were measured there.

    NaN where no slide was measured; beside the means, the number of slides behind each.

    >>> means, n = mean_drops([[0.25, 0.5], [0.75, np.nan]])
    >>> means.tolist(), n.tolist()
    ([0.5, 0.5], [2, 1])
    """
    table = inputs.as_float_array(drops, "drops", ndim=2, missing=True)
    return defined_mean(table, axis=0), (~np.isnan(table)).sum(axis=0)


@card(
    title="Faithfulness AUC of the paper",
    symbol=r"\mathrm{Faith.\,AUC}_{paper}",
    direction="higher",
    range=(-1.0, 1.0),
    needs="deletion drops of every slide at 16, 32, 64, 128 and 256",
    does_not_show="the same slides at every count: the largest counts rest on the largest bags",
    source="the paper, Table deletion-based perturbation faithfulness",
)
def paper_faithfulness(drops: ArrayLike) -> float:
    r"""Faithfulness AUC as in the paper: drops averaged over slides first, area divided by 256.

    .. math:: 256^{-1} \sum_j \tfrac12 (\overline{\Delta p}(K_j) + \overline{\Delta
       p}(K_{j+1}))(K_{j+1} - K_j), \quad \overline{\Delta p}(K)\ \text{over the slides with}\ N > K

    with :math:`K_j` = 16, 32, 64, 128 and 256, the counts of ``drops``, ``[S, 5]`` of
    :func:`drops_on_grid`. NaN where a count was measured on no slide.

    >>> round(paper_faithfulness([[0.016, 0.023, 0.036, 0.058, 0.090]]), 6)
    0.053656
    """
    means, n_slides = mean_drops(drops)
    fits, fix = len(means) == len(PAPER_COUNTS), "give the drops at 16, 32, 64, 128 and 256"
    inputs.require(fits, "drops", f"has {len(means)} counts", fix)
    return faithfulness_auc(PAPER_COUNTS, means) if n_slides.all() else math.nan


@card(
    title="Faithfulness AUC per slide",
    symbol=r"\mathrm{Faith.\,AUC}_s",
    direction="higher",
    range=(-1.0, 1.0),
    needs="deletion drops of every slide at 16, 32, 64, 128 and 256, and its number of tiles",
    does_not_show="the paper's number, which averages over slides first and divides by 256",
    source="FOCI; one area per slide can be resampled and paired",
)
def slide_faithfulness(
    drops: ArrayLike, n_tiles: ArrayLike, counts: Sequence[int] = PAPER_COUNTS
) -> Floats:
    r"""Faithfulness AUC of every slide at the paper's counts: an audit's deletion area.

    .. math:: K_m^{-1} \sum_j \tfrac12 (\Delta p_s(K_j) + \Delta p_s(K_{j+1}))(K_{j+1} - K_j), \quad
       K_m\ \text{the last of}\ 16, 32, 64, 128, 256\ \text{below}\ N_s

    A bag of N tiles has no drop at K >= N: its area runs to the last count :math:`K_m` below N and
    is divided by it. NaN where fewer than two counts are left, or one of them was not measured.
    ``drops`` are :func:`drops_on_grid` at the counts.

    >>> drops = np.array([[0.25, 0.5, np.nan, np.nan, np.nan]] * 2)
    >>> slide_faithfulness(drops, n_tiles=np.array([40, 20]))
    array([0.1875,    nan])
    """
    table = inputs.as_float_array(drops, "drops", ndim=2, missing=True)
    sizes = inputs.as_counts(n_tiles, "n_tiles")
    inputs.same_length(drops=table, n_tiles=sizes)
    ks = inputs.increasing(counts, name="counts")
    fix = f"give the drops at {', '.join(map(str, ks))}"
    inputs.require(table.shape[1] == len(ks), "drops", f"has {table.shape[1]} counts", fix)
    below = (ks < sizes[:, None]).sum(axis=1)
    areas = np.full(len(table), np.nan)
    for n in range(2, len(ks) + 1):
        areas[below == n] = area_over_counts(table[below == n, :n], ks[:n])
    return areas


@card(
    title="Symmetric relevance gain",
    symbol=r"\mathrm{SRG}",
    direction="higher",
    range=(-np.inf, np.inf),
    needs="the model's output on the first K tiles and without them, to the end of the slide",
    does_not_show="how many tiles decide; a large bag may gain much and still need half its tiles",
    source="after xMIL (Hense et al., 2024); Bluecher et al., 2024",
)
def symmetric_relevance_gain(
    kept_ks: ArrayLike,
    kept: ArrayLike,
    left_ks: ArrayLike,
    left: ArrayLike,
    whole: float,
    n_tiles: SupportsIndex,
) -> float:
    r"""Area of least-relevant-first removal minus that of most-relevant-first; no threshold.

    .. math:: \mathrm{SRG} = \frac{1}{N - 1} \int_0^{N - 1} \big(f(\text{the first } N - r) -
       f(\text{without the first } r)\big)\,dr

    with f the log-odds of the class that is followed, or a risk or number on its side of the cut,
    by the trapezoid rule. Removing the least relevant tiles leaves the first ones: ``kept`` is f of
    the first K tiles, ``left`` f without them, and ``whole`` f of all. NaN where a curve does not
    come to the last tile, and of a single tile.

    >>> symmetric_relevance_gain([1, 2], [3.0, 2.0], [1, 2], [0.0, -1.0], 1.0, n_tiles=3)
    2.0
    """
    n = int(n_tiles)
    kept_at, left_at = np.asarray(kept_ks, dtype=np.int64), np.asarray(left_ks, dtype=np.int64)
    first, rest = np.asarray(kept, dtype=np.float64), np.asarray(left, dtype=np.float64)
    for name, counts, values in (("kept", kept_at, first), ("left", left_at, rest)):
        fits = len(counts) == len(values)
        inputs.require(fits, name, "has another length than its counts", "give one per count")
    first, kept_at = first[kept_at < n], kept_at[kept_at < n]
    rest, left_at = rest[left_at > 0], left_at[left_at > 0]
    if n < 2 or not len(kept_at) or kept_at[0] != 1 or not len(left_at) or left_at[-1] != n - 1:
        return math.nan
    least = np.trapezoid([whole, *first[::-1]], [0, *(n - kept_at[::-1])])
    most = np.trapezoid([whole, *rest], [0, *left_at])
    return float(least - most) / (n - 1)
