"""Reach on slides the classifier gets right, and on slides it gets wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve.sufficiency import reached
from foci.metrics.inputs import Counts


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
    equation=r"\mathrm{Reach}\ \text{over}\ \{s : \hat y_s = y_s\}\ \text{and over}\ "
    r"\{s : \hat y_s \ne y_s\}",
    direction="none",
    range=(0.0, math.inf),
    needs="MSK with the label as target, the full-bag prediction and the label of every slide",
    does_not_show="which of the wrongly classified slides are reached by more than accident",
    source="FOCI; with the label as target Reach can exceed accuracy",
)
def reach_split(msks: Counts, predictions: ArrayLike, labels: ArrayLike) -> ReachSplit:
    r"""Reach over the correctly and over the wrongly classified slides.

    With the label as target, a noisy order can cross the threshold for the true class by accident
    on a slide the classifier gets wrong. Such reach says nothing for the ranking.

    >>> reach_split([1, 4, None, 2], predictions=[0, 1, 1, 0], labels=[0, 1, 1, 1])
    ReachSplit(correct=0.6666666666666666, wrong=1.0, n_correct=3, n_wrong=1)
    """
    marks = reached(inputs.counts(msks))
    predicted = inputs.class_indices(predictions, "predictions")
    true = inputs.class_indices(labels, "labels")
    inputs.same_length(msks=marks, predictions=predicted, labels=true)
    right = predicted == true
    return ReachSplit(
        correct=float(marks[right].mean()) if right.any() else math.nan,
        wrong=float(marks[~right].mean()) if not right.all() else math.nan,
        n_correct=int(right.sum()),
        n_wrong=int((~right).sum()),
    )
