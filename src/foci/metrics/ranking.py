"""Orders of tiles: agreement of two rankings of a bag, and of one with marked tiles.

Jaccard and Spearman are computed for all pairs of M rankings at once, as an audit needs them;
:func:`scipy.stats.spearmanr` would compute p-values with them and warn about constant rankings.
Marks come from an annotation or from the planted truth of a synthetic cohort. scikit-learn has
precision and average precision too, but is not needed to run FOCI; the tests compare with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.inputs import Floats, Integers

_NEEDS = "one score and one true/false mark per tile"
_LIMIT = "whether the model uses these tiles: a marked tile need not be the one that decides"


def top(scores: Floats, k: SupportsIndex) -> Integers:
    """Top-k tile indices: a stable descending sort, ties by tile index."""
    count = inputs.as_int(k, "k")
    n = len(scores)
    inputs.require(count <= n, "k", f"is {count} but the bag has {n} tiles", "pass a smaller k")
    return np.argsort(-scores, kind="stable")[:count]


def _two_scores(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    a, b = inputs.as_float_array(first, "first"), inputs.as_float_array(second, "second")
    inputs.same_length(first=a, second=b)
    return a, b


def overlaps(scores: Floats, k: SupportsIndex) -> Floats:
    """:func:`jaccard_at_k` of every pair of rankings of a bag, ``[M, M]`` from ``[M, N]``."""
    members = np.zeros(scores.shape)
    for row, ranking in zip(members, scores, strict=True):
        row[top(ranking, k)] = 1.0
    shared = members @ members.T
    together: Floats = shared / (2 * members[0].sum() - shared)
    return together


def rank_correlations(scores: Floats) -> Floats:
    """:func:`spearman` of every pair of rankings of a bag, ``[M, M]`` from ``[M, N]``."""
    ranks = rankdata(scores, axis=1)
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(centred, axis=1)
    products = np.outer(sizes, sizes)
    undefined = np.full_like(products, np.nan)
    found = np.divide(centred @ centred.T, products, out=undefined, where=products > 0)
    correlations: Floats = np.clip(found, -1, 1)
    return correlations


@card(
    title="Overlap of the top K",
    symbol=r"J(K)",
    direction="none",
    range=(0.0, 1.0),
    needs="two rankings of the same bag",
    does_not_show="which of them is right; two rankings can agree on uninformative tiles",
    source="Jaccard index",
)
def jaccard_at_k(first: ArrayLike, second: ArrayLike, k: SupportsIndex) -> float:
    r"""Overlap of the top K tiles of two rankings.

    .. math:: J(K) = |A_K \cap B_K| / |A_K \cup B_K|

    Two random rankings of N tiles give about :math:`K / (2N - K)`. Ties go by tile index.

    >>> jaccard_at_k([0.9, 0.8, 0.1, 0.0], [0.0, 0.9, 0.8, 0.1], k=2)
    0.3333333333333333
    """
    return float(overlaps(np.stack(_two_scores(first, second)), k)[0, 1])


@card(
    title="Spearman rank correlation",
    symbol=r"\rho_S",
    direction="none",
    range=(-1.0, 1.0),
    needs="two rankings of the same bag",
    does_not_show="agreement at the top: it weighs the last tiles as much as the first",
    source="Spearman, 1904",
)
def spearman(first: ArrayLike, second: ArrayLike) -> float:
    r"""Correlation of the tile ranks, mid-ranks on ties; NaN if a ranking is constant.

    .. math:: \rho_S = \mathrm{corr}(\mathrm{rank}(a), \mathrm{rank}(b))

    >>> round(spearman([1.0, 2.0, 3.0], [10.0, 40.0, 30.0]), 6)
    0.5
    """
    return float(rank_correlations(np.stack(_two_scores(first, second)))[0, 1])


@card(
    title="Precision at k",
    symbol=r"P@k",
    direction="higher",
    range=(0.0, 1.0),
    needs=_NEEDS,
    does_not_show=_LIMIT,
    source="information retrieval",
)
def precision_at_k(scores: ArrayLike, truth: ArrayLike, k: SupportsIndex) -> float:
    r"""Share of the top k tiles that are marked; ties by tile index.

    .. math:: P@k = k^{-1} \sum_{i \le k} t_{\pi(i)}

    >>> precision_at_k([0.9, 0.1, 0.8, 0.7], truth=[1, 1, 0, 1], k=2)
    0.5
    """
    values = inputs.as_float_array(scores, "scores")
    marks = inputs.as_bool_mask(truth, len(values))
    return float(marks[top(values, k)].mean())


@card(
    title="Average precision",
    symbol=r"\mathrm{AUPRC}",
    direction="higher",
    range=(0.0, 1.0),
    needs=_NEEDS,
    does_not_show=_LIMIT + "; its chance level is the share of marked tiles",
    source="information retrieval; step-wise area under precision and recall",
)
def average_precision(scores: ArrayLike, truth: ArrayLike) -> float:
    r"""Area under the precision-recall curve by steps; tied tiles enter together.

    .. math:: \mathrm{AUPRC} = \sum_n (R_n - R_{n-1}) P_n\ \text{over the distinct scores}

    >>> round(average_precision([0.9, 0.1, 0.8, 0.7], truth=[1, 0, 0, 1]), 6)
    0.833333
    """
    values = inputs.as_float_array(scores, "scores")
    marks = inputs.as_bool_mask(truth, len(values), some=True)
    order = np.argsort(-values, kind="stable")
    last_of_ties = np.append(np.diff(values[order]) != 0, True)
    found = np.cumsum(marks[order])[last_of_ties]
    seen = np.arange(1, len(order) + 1)[last_of_ties]
    return float(np.sum(np.diff(found, prepend=0) * found / seen) / marks.sum())


def chance_of_average_precision(n_tiles: int, n_marked: int) -> float:
    r"""Mean average precision of all orders of the tiles; it lies above the share of marked ones.

    .. math:: \frac1N \sum_{k=1}^{N} \frac1k \Big(1 + (k - 1) \frac{R - 1}{N - 1}\Big)

    >>> chance_of_average_precision(2, 1), chance_of_average_precision(3, 3)
    (0.75, 1.0)
    """
    others = (n_marked - 1) / max(n_tiles - 1, 1)
    counts = np.arange(1, n_tiles + 1)
    return float(np.mean((1 + (counts - 1) * others) / counts))


@card(
    title="Lesions found (FROC)",
    symbol=r"\mathrm{FROC}(f)",
    direction="higher",
    range=(0.0, 1.0),
    needs="one score per tile, and the number of the marked region in which it lies",
    does_not_show=_LIMIT + "; one tile of a large region finds all of it",
    source="free-response ROC; scores are compared within a slide, not between slides",
)
def froc(scores: ArrayLike, lesions: ArrayLike, false_tiles: SupportsIndex) -> float:
    r"""Share of the marked regions that the ranking finds before more than ``f`` tiles outside.

    .. math:: \mathrm{FROC}(f) = L^{-1} \big|\{\ell : \text{fewer than } f + 1
       \text{ tiles outside come before the first tile of } \ell\}\big|

    ``lesions`` are ``[N]`` whole numbers: 0 outside, otherwise that of the region. Ties by index.

    >>> froc([0.9, 0.8, 0.7, 0.6, 0.5], lesions=[0, 1, 0, 0, 2], false_tiles=1)
    0.5
    """
    values = inputs.as_float_array(scores, "scores")
    regions = inputs.as_counts(lesions, "lesions", lowest=0)
    inputs.same_length(scores=values, lesions=regions)
    inputs.require(bool(regions.any()), "lesions", "marks no tile", "leave the slide out")
    allowed = inputs.as_int(false_tiles, "false_tiles", lowest=0)
    in_order = regions[np.argsort(-values, kind="stable")]
    before = np.cumsum(in_order == 0)
    found = np.unique(in_order[(before <= allowed) & (in_order > 0)])
    return len(found) / len(np.unique(regions[regions > 0]))


def chance_of_froc(sizes: Sequence[int], n_outside: int, false_tiles: int) -> float:
    r"""Mean of :func:`froc` over all orders of the tiles, from the tiles in each region.

    .. math:: 1 - L^{-1} \sum_\ell \prod_{i=0}^{f} \frac{q - i}{m_\ell + q - i}

    A region is missed if the first f + 1 of its own and the outside tiles are all outside.

    >>> chance_of_froc([1], n_outside=3, false_tiles=0)
    0.25
    """
    if n_outside <= false_tiles:
        return 1.0
    outside = n_outside - np.arange(false_tiles + 1)
    missed = [float(np.prod(outside / (size + outside))) for size in sizes]
    return 1 - float(np.mean(missed))
