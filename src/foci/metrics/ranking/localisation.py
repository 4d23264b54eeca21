"""Precision at k and average precision of a ranking against marked tiles.

The marks come from an annotation or from the planted truth of a synthetic cohort. scikit-learn has
these metrics too, but is not needed to run FOCI; the tests compare with it.
"""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card

_NEEDS = "one score and one true/false mark per tile"
_LIMIT = "whether the model uses these tiles: a marked tile need not be the one that decides"


@card(
    title="Precision at k",
    symbol=r"P@k",
    equation=r"k^{-1} \sum_{i \le k} t_{\pi(i)}",
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
    values = inputs.numbers(scores, "scores")
    marks = inputs.marks(truth, len(values))
    return float(marks[inputs.top(values, k)].mean())


@card(
    title="Average precision",
    symbol=r"\mathrm{AUPRC}",
    equation=r"\sum_n (R_n - R_{n-1}) P_n\ \text{over the distinct scores}",
    direction="higher",
    range=(0.0, 1.0),
    needs=_NEEDS,
    does_not_show=_LIMIT + "; its chance level is the share of marked tiles",
    source="information retrieval; step-wise area under precision and recall",
)
def average_precision(scores: ArrayLike, truth: ArrayLike) -> float:
    r"""Area under the precision-recall curve by steps; tied tiles enter together.

    .. math:: \mathrm{AUPRC} = \sum_n (R_n - R_{n-1}) P_n

    >>> round(average_precision([0.9, 0.1, 0.8, 0.7], truth=[1, 0, 0, 1]), 6)
    0.833333
    """
    values = inputs.numbers(scores, "scores")
    marks = inputs.marks(truth, len(values), some=True)
    order = np.argsort(-values, kind="stable")
    last_of_ties = np.append(np.diff(values[order]) != 0, True)
    found = np.cumsum(marks[order])[last_of_ties]
    seen = np.arange(1, len(order) + 1)[last_of_ties]
    return float(np.sum(np.diff(found, prepend=0) * found / seen) / marks.sum())
