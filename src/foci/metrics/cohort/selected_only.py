"""AUC of the classifier with all tiles, and with only the top K of every slide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.cohort.stacked import Stack, fill, stack
from foci.metrics.inputs import Floats, Integers


def _binary_auc(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """Mann-Whitney U over the number of pairs; a tied pair counts one half.

    :func:`scipy.stats.mannwhitneyu` gives the same U, but computes a p-value with it.
    """
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    rank_sum = rankdata(scores)[positive].sum()
    return float((rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


@card(
    title="Area under the ROC curve",
    symbol=r"\mathrm{AUC}",
    equation=r"C^{-1} \sum_c \Pr[p_c(i) > p_c(j)] + \tfrac12 \Pr[p_c(i) = p_c(j)], \quad "
    r"y_i = c,\ y_j \ne c",
    direction="higher",
    range=(0.0, 1.0),
    needs="one prediction and one label per slide, every class present",
    does_not_show="calibration, or the accuracy at any threshold",
    source="Mann and Whitney, 1947; one-vs-rest macro mean for several classes",
)
def auc(probs: ArrayLike, labels: ArrayLike) -> float:
    r"""ROC AUC of two classes; for more, the macro mean of one-vs-rest AUCs.

    .. math:: \mathrm{AUC} = C^{-1} \sum_c \Pr[p_c(i) > p_c(j)]
       + \tfrac12 \Pr[p_c(i) = p_c(j)], \qquad y_i = c,\ y_j \ne c

    Args:
        probs: ``[S, C]`` class probabilities, or ``[S]`` scores of class 1.
        labels: ``[S]`` class indices; every class must occur.

    >>> auc([0.1, 0.4, 0.35, 0.8], labels=[0, 0, 1, 1])
    0.75
    """
    binary = np.ndim(probs) == 1
    scores = inputs.numbers(probs, "probs") if binary else inputs.probabilities(probs)
    n_classes = 2 if binary else scores.shape[1]
    true = inputs.class_indices(labels, "labels", n_classes)
    inputs.same_length(probs=scores, labels=true)
    absent = set(range(n_classes)) - set(true.tolist())
    what = f"lacks class {min(absent, default=None)}"
    inputs.require(not absent, "labels", what, "AUC needs slides of every class")
    if n_classes == 2:
        return _binary_auc(scores if binary else scores[:, 1], true == 1)
    return float(np.mean([_binary_auc(scores[:, c], true == c) for c in range(n_classes)]))


def adaptive_budgets(n_tiles: Integers, alpha: float = 0.03, k_min: int = 16) -> Integers:
    """:func:`adaptive_budget` of every bag size in an array."""
    share = np.floor(inputs.threshold(alpha, "alpha") * n_tiles).astype(np.int64)
    budgets: Integers = np.maximum(inputs.whole(k_min, "k_min"), share)
    return budgets


def adaptive_budget(n_tiles: SupportsIndex, alpha: float = 0.03, k_min: SupportsIndex = 16) -> int:
    r"""The paper's adaptive count :math:`K_s = \max(K_{\min}, \lfloor \alpha N_s \rfloor)`.

    >>> adaptive_budget(1024), adaptive_budget(100)
    (30, 16)
    """
    smallest, size = inputs.whole(k_min, "k_min"), inputs.whole(n_tiles, "n_tiles")
    return int(adaptive_budgets(np.array(size), alpha, smallest))


def revealed_at(probs: Floats, ks: Integers, wanted: Integers) -> Floats:
    """Class probabilities ``[..., C]`` at one count per curve; NaN where it was not measured.

    Args:
        probs: ``[..., K, C]``, one curve or many of the same counts.
        ks: ``[K]`` their counts.
        wanted: The count asked for, one per curve.
    """
    place = np.minimum(np.searchsorted(ks, wanted), len(ks) - 1)
    values = np.take_along_axis(probs, place[..., None, None], axis=-2)[..., 0, :]
    return np.where((ks[place] == wanted)[..., None], values, np.nan)


def selected_probabilities(
    probs: Sequence[ArrayLike],
    ks: Sequence[ArrayLike],
    n_tiles: ArrayLike,
    full: ArrayLike,
    k: SupportsIndex | Sequence[int] | None = 32,
) -> Floats:
    """Class probabilities ``[S, C]`` of every slide with only its top ``min(k, N)`` tiles.

    Where all tiles are kept and the curve stops earlier, the full bag is the answer; NaN where the
    count was not revealed otherwise.

    Args:
        probs: One insertion curve ``[len(ks), C]`` per slide.
        ks: One array of reveal counts per slide.
        n_tiles: ``[S]`` candidate tiles.
        full: ``[S, C]`` full-bag probabilities.
        k: Tiles kept, of all slides or of each; None for :func:`adaptive_budget`.

    >>> curves, full = [[[0.5, 0.5]], [[0.25, 0.75]]], [[0.5, 0.5], [0.1, 0.9]]
    >>> selected_probabilities(curves, [[8], [16]], [8, 90], full, k=None)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    whole = inputs.probabilities(full, "full")
    sizes = inputs.bag_sizes(n_tiles)
    inputs.same_length(probs=probs, ks=ks, n_tiles=sizes, full=whole)
    return kept_alone(stack(probs, ks), sizes, whole, _kept(k, sizes))


def kept_alone(stacks: Sequence[Stack], sizes: Integers, full: Floats, kept: Integers) -> Floats:
    """:func:`selected_probabilities` of stacked curves, with ``[S]`` tiles kept of each slide."""
    within = np.minimum(kept, sizes)
    n_slides, n_classes = full.shape
    found = fill(
        stacks,
        (n_slides, n_classes),
        lambda part: revealed_at(part.probs, part.ks, within[part.rows]),
    )
    return np.where(np.isnan(found) & (within == sizes)[:, None], full, found)


def _kept(k: SupportsIndex | Sequence[int] | None, sizes: Integers) -> Integers:
    """Tiles asked for, one count per slide."""
    if k is None:
        return adaptive_budgets(sizes)
    if not isinstance(k, Sequence):
        return np.full(len(sizes), inputs.whole(k, "k"))
    counts = inputs.bag_sizes(k, "k")
    inputs.same_length(k=counts, n_tiles=sizes)
    return counts


@card(
    title="Selected-only AUC",
    symbol=r"\mathrm{AUC}_K",
    equation=r"\mathrm{AUC}\{p^{(s)}(K_s)\}_s, \quad K_s = 32\ \text{or}\ "
    r"\max(16, \lfloor 0.03 N_s \rfloor)",
    direction="higher",
    range=(0.0, 1.0),
    needs="insertion curves that hold K, full-bag probabilities and labels",
    does_not_show="that the selection is good where random tiles keep the AUC as well",
    source="the paper, Table selected-only downstream performance",
)
def selected_only_auc(
    probs: Sequence[ArrayLike],
    ks: Sequence[ArrayLike],
    n_tiles: ArrayLike,
    full: ArrayLike,
    labels: ArrayLike,
    k: SupportsIndex | Sequence[int] | None = 32,
) -> float:
    r"""AUC when every slide keeps only its top K tiles; NaN where K was not revealed.

    .. math:: \mathrm{AUC}_K = \mathrm{AUC}\{p^{(s)}(K_s)\}_s

    Compare it with :func:`auc` of the full bags, and with the same of random orders.

    Args:
        probs: One insertion curve ``[len(ks), C]`` per slide.
        ks: One array of reveal counts per slide.
        n_tiles: ``[S]`` candidate tiles.
        full: ``[S, C]`` full-bag probabilities.
        labels: ``[S]`` class indices; every class must occur.
        k: Tiles kept, of all slides or of each; None for the adaptive number.

    >>> full = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]]
    >>> some = [[[0.9, 0.1]], [[0.4, 0.6]], [[0.5, 0.5]], [[0.1, 0.9]]]
    >>> selected_only_auc(some, [[32]] * 4, [500] * 4, full, labels=[0, 0, 1, 1])
    0.75
    """
    selected = selected_probabilities(probs, ks, n_tiles, full, k)
    return math.nan if np.isnan(selected).any() else auc(selected, labels)
