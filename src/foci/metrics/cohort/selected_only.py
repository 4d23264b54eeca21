"""Does the prediction survive when only the selected tiles are kept?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.cohort.stacked import per_curve
from foci.metrics.inputs import Floats


def _binary_auc(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """Mann-Whitney U over the number of pairs; a tied pair counts one half."""
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
    r"""AUC for two classes, the unweighted mean of one-vs-rest AUCs for more.

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


def adaptive_budget(n_tiles: SupportsIndex, alpha: float = 0.03, k_min: SupportsIndex = 16) -> int:
    r"""The paper's adaptive count :math:`K_s = \max(K_{\min}, \lfloor \alpha N_s \rfloor)`.

    >>> adaptive_budget(1024), adaptive_budget(100)
    (30, 16)
    """
    share = inputs.threshold(alpha, "alpha")
    return max(inputs.whole(k_min, "k_min"), math.floor(share * inputs.whole(n_tiles, "n_tiles")))


def probability_at(
    probs: ArrayLike, ks: ArrayLike, n_tiles: SupportsIndex, k: SupportsIndex = 32
) -> Floats:
    """Class probabilities ``[C]`` with only the top ``min(k, N)`` tiles, read from a stored curve.

    >>> probability_at([[0.5, 0.5], [0.25, 0.75]], ks=[1, 32], n_tiles=500, k=32).tolist()
    [0.25, 0.75]
    """
    curve, counts, _ = inputs.curve(probs, ks, 0)
    wanted = min(inputs.whole(k, "k"), inputs.whole(n_tiles, "n_tiles"))
    row: Floats = curve[inputs.rows_at(counts, np.array([wanted]))[0]]
    return row


@dataclass(frozen=True)
class SelectedOnly:
    """AUC with all tiles, with the selected ones, and with as many random ones."""

    full: float
    selected: float
    random: float

    @property
    def kept(self) -> float:
        """Selected minus full bag: 0 where nothing is lost."""
        return self.selected - self.full

    @property
    def over_random(self) -> float:
        """Selected minus random: 0 where any tiles would do."""
        return self.selected - self.random


@card(
    title="Selected-only AUC",
    symbol=r"\mathrm{AUC}_K",
    equation=r"\mathrm{AUC}\{p^{(s)}(K_s)\}_s, \quad K_s = 32\ \text{or}\ "
    r"\max(16, \lfloor 0.03 N_s \rfloor)",
    direction="higher",
    range=(0.0, 1.0),
    needs="insertion curves that hold K, full-bag probabilities, random orders and labels",
    does_not_show="that the selection is good where random tiles keep the AUC as well",
    source="the paper, Table selected-only downstream performance",
)
def selected_only_auc(
    full: ArrayLike, selected: ArrayLike, random: ArrayLike, labels: ArrayLike
) -> SelectedOnly:
    r"""AUC when only the top K tiles are kept, against the full bag and random tiles.

    .. math:: \mathrm{AUC}_K = \mathrm{AUC}\{p^{(s)}(K_s)\}_s

    Args:
        full: ``[S, C]`` full-bag probabilities.
        selected: ``[S, C]``, :func:`probability_at` for every slide.
        random: ``[R, S, C]``, the same for R random orders; their AUCs are averaged.
        labels: ``[S]`` class indices.

    >>> full = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]]
    >>> some = [[0.9, 0.1], [0.4, 0.6], [0.5, 0.5], [0.1, 0.9]]
    >>> selected_only_auc(full, some, [some, full], labels=[0, 0, 1, 1])
    SelectedOnly(full=1.0, selected=0.75, random=0.875)
    """
    orders = inputs.probabilities(random, "random", ndim=3)
    return SelectedOnly(
        full=auc(full, labels),
        selected=auc(selected, labels),
        random=float(np.mean([auc(order, labels) for order in orders])),
    )


def selected_probabilities(
    probs: Sequence[ArrayLike],
    ks: Sequence[ArrayLike],
    n_tiles: Sequence[int],
    k: SupportsIndex | None = 32,
) -> Floats:
    """:func:`probability_at` for every slide, ``[S, C]``; ``k=None`` uses the adaptive count.

    >>> selected_probabilities([[[0.5, 0.5]], [[0.25, 0.75]]], [[8], [16]], [8, 90], k=None)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    n_slides = inputs.same_length(probs=probs, ks=ks, n_tiles=n_tiles)

    def selected(i: int) -> Floats:
        budget = adaptive_budget(n_tiles[i]) if k is None else k
        return probability_at(probs[i], ks[i], n_tiles[i], budget)

    return inputs.probabilities(per_curve(selected, n_slides))
