"""AUC of a cohort's predictions, binary or one-vs-rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from foci.metrics import inputs
from foci.metrics.cards import card
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
