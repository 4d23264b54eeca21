"""Numbers over all slides of a cohort: AUC, with all tiles or few, quantiles, ratios, spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve import Stack, reached, stack
from foci.metrics.inputs import Counts, Floats, Integers, Marks
from foci.metrics.stats import case_draws

QUARTILES = (0.25, 0.5, 0.75)
_KINDS: tuple[Literal["beyond", "none"] | None, ...] = (None, "beyond", "none")
_DRAWS_AT_ONCE = 100


@dataclass(frozen=True)
class ReachSplit:
    """Reach on both parts of a cohort; NaN for a part without slides."""

    correct: float
    wrong: float
    n_correct: int
    n_wrong: int


@card(
    title="Reach by correctness",
    symbol=r"\mathrm{Reach}_{\hat y = y},\ \mathrm{Reach}_{\hat y \ne y}",
    direction="none",
    range=(0.0, math.inf),
    needs="MSK with the label as target, the full-bag prediction and the label of every slide",
    does_not_show="which of the wrongly classified slides are reached by more than accident",
    source="FOCI; with the label as target Reach can exceed accuracy",
)
def reach_split(msks: Counts, predictions: ArrayLike, labels: ArrayLike) -> ReachSplit:
    r"""Reach over the correctly and over the wrongly classified slides.

    .. math:: \mathrm{Reach}\ \text{over}\ \{s : \hat y_s = y_s\}\ \text{and over}\ \{s : \hat y_s
       \ne y_s\}

    With the label as target, a noisy order can cross the threshold for the true class by accident
    on a slide the classifier gets wrong. Such reach says nothing for the ranking.

    >>> reach_split([1, 4, None, 2], predictions=[0, 1, 1, 0], labels=[0, 1, 1, 1])
    ReachSplit(correct=0.6666666666666666, wrong=1.0, n_correct=3, n_wrong=1)
    """
    found = reached(inputs.counts(msks))
    predicted = inputs.class_indices(predictions, "predictions")
    true = inputs.class_indices(labels, "labels")
    inputs.same_length(msks=found, predictions=predicted, labels=true)
    right = predicted == true
    return ReachSplit(
        correct=float(found[right].mean()) if right.any() else math.nan,
        wrong=float(found[~right].mean()) if not right.all() else math.nan,
        n_correct=int(right.sum()),
        n_wrong=int((~right).sum()),
    )


def class_aucs(probs: ArrayLike, labels: ArrayLike) -> Floats:
    """AUC of each class against the rest, ``[C]``; NaN where all or no slides are of the class."""
    scores = inputs.probabilities(probs)
    true = inputs.class_indices(labels, "labels", scores.shape[1])
    inputs.same_length(probs=scores, labels=true)
    aucs: Floats = _weighted_aucs(scores, true, np.ones((1, len(true)), dtype=np.int64))[0]
    return aucs


def class_auc_draws(
    probs: ArrayLike,
    labels: ArrayLike,
    cases: Sequence[Any] | NDArray[Any],
    n_boot: int = 1000,
    seed: int = 0,
) -> Floats:
    r"""Cluster bootstrap of :func:`class_aucs`: whole patients are drawn with replacement.

    .. math:: \mathrm{AUC}_c^{(b)} =
       \frac{\sum_{i,j} w_i^{(b)} w_j^{(b)} \big(\mathbf{1}[p_i > p_j]
       + \tfrac12 \mathbf{1}[p_i = p_j]\big)}{\sum_i w_i^{(b)} \sum_j w_j^{(b)}},
       \qquad y_i = c,\ y_j \ne c

    The draws are those of :func:`foci.metrics.case_means`. ``[n_boot, C]``; NaN where all or no
    slides of a draw are of the class.
    """
    scores = inputs.probabilities(probs)
    true = inputs.class_indices(labels, "labels", scores.shape[1])
    case, weights = case_draws(cases, len(true), n_boot, seed)
    parts = (weights[i : i + _DRAWS_AT_ONCE, case] for i in range(0, n_boot, _DRAWS_AT_ONCE))
    return np.concatenate([_weighted_aucs(scores, true, part.astype(np.int64)) for part in parts])


def _weighted_aucs(scores: Floats, labels: Integers, weights: Integers) -> Floats:
    """AUC of each class against the rest with ``[B, S]`` weights of the slides, ``[B, C]``."""
    classes = range(scores.shape[1])
    return np.stack([binary_auc(scores[:, c], labels == c, weights) for c in classes], axis=1)


def binary_auc(scores: Floats, positive: Marks, weights: Integers) -> Floats:
    """Weighted Mann-Whitney U over the weight of all pairs, ``[B]``, from sums over tied scores."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf) > 0)
    sorted_weights, sign = weights[:, order], positive[order]
    above = np.add.reduceat(np.where(sign, sorted_weights, 0), starts, axis=1)
    rest = np.add.reduceat(np.where(sign, 0, sorted_weights), starts, axis=1)
    below = np.cumsum(rest, axis=1) - rest
    won = (above * (below + rest / 2)).sum(axis=1)
    pairs = above.sum(axis=1) * rest.sum(axis=1)
    aucs: Floats = np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)
    return aucs


@dataclass(frozen=True)
class CountQuantile:
    """A quantile of tile counts: a number, or the reason why it is infinite.

    ``"beyond"``: more than K_max tiles; ``"none"``: no number of tiles is enough.
    """

    value: float | None
    missing: Literal["beyond", "none"] | None


def quantiles_with_missing(
    counts: Counts, beyond: ArrayLike, q: Sequence[float] = QUARTILES
) -> tuple[CountQuantile, ...]:
    """Quantiles of tile counts with missing counts as infinity, for instance of decisive K.

    A ranking that fails must not look good, so slides without a count stay in. They are sorted:
    counts, then those censored at K_max, then those that no count helps. Between two counts the
    quantile is interpolated as by :func:`numpy.quantile`. Between a count and a missing one it is
    missing. ``beyond`` is true where a missing count (NaN or None) is censored at K_max; any other
    does not exist.

    >>> quantiles_with_missing([3, None, 5, None], beyond=[0, 1, 0, 0], q=[0, 0.25, 0.75])[1:]
    (CountQuantile(value=4.5, missing=None), CountQuantile(value=None, missing='none'))
    >>> quantiles_with_missing([2, 4, None], beyond=[0, 0, 1], q=[0.5, 1])
    (CountQuantile(value=4.0, missing=None), CountQuantile(value=None, missing='beyond'))
    """
    values, censored = inputs.counts(counts, "counts"), inputs.as_float_array(beyond, "beyond")
    inputs.same_length(counts=values, beyond=censored)
    inputs.require(np.isin(censored, (0, 1)).all(), "beyond", "is not true or false", "pass marks")
    found = reached(values)
    fix = "mark only slides without a count"
    inputs.require(not censored[found].any(), "beyond", "marks a slide that has a count", fix)
    shares = inputs.as_float_array(q, "q")
    inside = shares.min() >= 0 and shares.max() <= 1
    inputs.require(inside, "q", "leaves [0, 1]", "pass shares, 0.5 for the median")

    kinds = np.where(found, 0, np.where(censored == 1, 1, 2))  # places in _KINDS
    order = np.lexsort((values, kinds))
    values, kinds = values[order], kinds[order]
    position = np.round((len(values) - 1) * shares, 9)  # 100 * 0.55 must not lie above 55
    lower, upper = np.floor(position).astype(int), np.ceil(position).astype(int)
    kind = np.maximum(kinds[lower], kinds[upper])
    between = values[lower] + (position - lower) * (values[upper] - values[lower])
    return tuple(
        CountQuantile(None if missing else float(value), _KINDS[missing])
        for value, missing in zip(between, kind, strict=True)
    )


@dataclass(frozen=True)
class GeometricRatio:
    """Ratio of two geometric means and the number of slides behind it; NaN if there is none."""

    ratio: float
    n: int


@card(
    title="Ratio of geometric means",
    symbol=r"\mathrm{GMR}",
    direction="lower",
    range=(0.0, math.inf),
    needs="tile counts of every slide under two rankings",
    does_not_show="the slides that only one ranking reaches; it is no part of any answer's rule",
)
def geometric_mean_ratio(a: Counts, b: Counts) -> GeometricRatio:
    r"""Ratio of the geometric means of two rankings' tile counts, on the slides both reach.

    .. math:: \exp\big(|B|^{-1} \sum_{s \in B} (\ln a_s - \ln b_s)\big), \quad B = \{s : \text{both
       rankings reach}\}

    Below 1 the first ranking needs fewer tiles: 0.5 is half as many. It gives the size of a
    difference; whether there is one, :func:`foci.metrics.compare_orders` says.

    >>> geometric_mean_ratio(a=[1, 2, None], b=[4, 2, 3])
    GeometricRatio(ratio=0.5, n=2)
    """
    first, second = inputs.two_counts(a=a, b=b)
    both = reached(first) & reached(second)
    ratios = np.log(first[both]) - np.log(second[both])
    ratio = float(np.exp(ratios.mean())) if both.any() else math.nan
    return GeometricRatio(ratio, int(both.sum()))


@card(
    title="Spread over seeds",
    symbol=r"\sigma_{\text{seeds}}",
    direction="none",
    range=(0.0, math.inf),
    needs="one value per seed",
    does_not_show="sampling error over patients; with three seeds it is small by construction",
    source="the paper's +-: the population standard deviation",
)
def seed_spread(values: ArrayLike) -> float:
    r"""Population standard deviation over seeds (ddof 0), the paper's "+-".

    .. math:: \sqrt{R^{-1} \sum_{r=1}^{R} (v_r - \bar v)^2}

    0 for one seed.

    >>> round(seed_spread([3.0, 3.6, 3.3]), 6)
    0.244949
    """
    return float(inputs.as_float_array(values, "values").std(ddof=0))


@card(
    title="Area under the ROC curve",
    symbol=r"\mathrm{AUC}",
    direction="higher",
    range=(0.0, 1.0),
    needs="one prediction and one label per slide, every class present",
    does_not_show="calibration, or the accuracy at any threshold",
    source="Mann and Whitney, 1947; one-vs-rest macro mean for several classes",
)
def auc(probs: ArrayLike, labels: ArrayLike) -> float:
    r"""ROC AUC of two classes; for more, the macro mean of one-vs-rest AUCs.

    .. math:: \mathrm{AUC} = C^{-1} \sum_c \Pr[p_c(i) > p_c(j)] + \tfrac12 \Pr[p_c(i) = p_c(j)],
       \quad y_i = c,\ y_j \ne c

    From class probabilities ``[S, C]`` or scores of class 1, ``[S]``; every class must occur.

    >>> auc([0.1, 0.4, 0.35, 0.8], labels=[0, 0, 1, 1])
    0.75
    """
    binary = np.ndim(probs) == 1
    scores = inputs.as_float_array(probs, "probs") if binary else inputs.probabilities(probs)
    n_classes = 2 if binary else scores.shape[1]
    true = inputs.class_indices(labels, "labels", n_classes)
    inputs.same_length(probs=scores, labels=true)
    absent = set(range(n_classes)) - set(true.tolist())
    what = f"lacks class {min(absent, default=None)}"
    inputs.require(not absent, "labels", what, "AUC needs slides of every class")
    equal = np.ones((1, len(true)), dtype=np.int64)
    if n_classes == 2:
        return float(binary_auc(scores if binary else scores[:, 1], true == 1, equal)[0])
    return float(np.mean(_weighted_aucs(scores, true, equal)))


def adaptive_budgets(n_tiles: Integers, alpha: float = 0.03, k_min: int = 16) -> Integers:
    """:func:`adaptive_budget` of every bag size in an array."""
    share = np.floor(inputs.threshold(alpha, "alpha") * n_tiles).astype(np.int64)
    budgets: Integers = np.maximum(inputs.as_int(k_min, "k_min"), share)
    return budgets


def adaptive_budget(n_tiles: SupportsIndex, alpha: float = 0.03, k_min: SupportsIndex = 16) -> int:
    r"""The paper's adaptive count :math:`K_s = \max(K_{\min}, \lfloor \alpha N_s \rfloor)`.

    >>> adaptive_budget(1024), adaptive_budget(100)
    (30, 16)
    """
    smallest, size = inputs.as_int(k_min, "k_min"), inputs.as_int(n_tiles, "n_tiles")
    return int(adaptive_budgets(np.array(size), alpha, smallest))


def selected_probabilities(
    probs: Sequence[ArrayLike],
    ks: Sequence[ArrayLike],
    n_tiles: ArrayLike,
    full: ArrayLike,
    k: SupportsIndex | Sequence[int] | None = 32,
) -> Floats:
    """Class probabilities ``[S, C]`` of every slide with only its top ``min(k, N)`` tiles.

    Where all tiles are kept and the curve stops earlier, the full bag is the answer; NaN where the
    count was not revealed otherwise. Curves as in :func:`foci.metrics.stack`, ``full`` ``[S, C]``;
    ``k`` tiles are kept, of all slides or of each, by :func:`adaptive_budget` where it is None.

    >>> curves, full = [[[0.5, 0.5]], [[0.25, 0.75]]], [[0.5, 0.5], [0.1, 0.9]]
    >>> selected_probabilities(curves, [[8], [16]], [8, 90], full, k=None)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    full_probs = inputs.probabilities(full, "full")
    sizes = inputs.as_counts(n_tiles, "n_tiles")
    inputs.same_length(probs=probs, ks=ks, n_tiles=sizes, full=full_probs)
    if k is None:
        kept = adaptive_budgets(sizes)
    elif isinstance(k, Sequence):
        kept = inputs.as_counts(k, "k")
        inputs.same_length(k=kept, n_tiles=sizes)
    else:
        kept = np.full(len(sizes), inputs.as_int(k, "k"))
    return kept_alone(stack(probs, ks), sizes, full_probs, kept)


def kept_alone(stacks: Sequence[Stack], sizes: Integers, full: Floats, kept: Integers) -> Floats:
    """:func:`selected_probabilities` of stacked curves, with ``[S]`` tiles kept of each slide."""
    within = np.minimum(kept, sizes)
    found = np.full(full.shape, np.nan)
    for part in stacks:
        wanted = within[part.rows]
        place = np.minimum(np.searchsorted(part.ks, wanted), len(part.ks) - 1)
        values = part.probs[np.arange(len(wanted)), place]
        found[part.rows] = np.where((part.ks[place] == wanted)[:, None], values, np.nan)
    return np.where(np.isnan(found) & (within == sizes)[:, None], full, found)


@card(
    title="Selected-only AUC",
    symbol=r"\mathrm{AUC}_K",
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

    .. math:: \mathrm{AUC}_K = \mathrm{AUC}\{p^{(s)}(K_s)\}_s, \quad K_s = 32\ \text{or}\ \max(16,
       \lfloor 0.03 N_s \rfloor)

    Compare it with :func:`auc` of the full bags, and with the same of random orders. Arguments as
    in :func:`selected_probabilities`, and ``labels`` as in :func:`auc`.

    >>> full = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]]
    >>> some = [[[0.9, 0.1]], [[0.4, 0.6]], [[0.5, 0.5]], [[0.1, 0.9]]]
    >>> selected_only_auc(some, [[32]] * 4, [500] * 4, full, labels=[0, 0, 1, 1])
    0.75
    """
    selected = selected_probabilities(probs, ks, n_tiles, full, k)
    return math.nan if np.isnan(selected).any() else auc(selected, labels)
