"""How well a risk, a number or labels fit what was observed: C-index, R2 and macro AUC.

Each has an interval by resampling patients: all slides of a patient are drawn together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.cohort import binary_auc
from foci.metrics.inputs import Floats, Integers, Marks, defined_mean
from foci.metrics.stats import Interval, Weights, weighted_interval

_AT_ONCE = 2**22  # weights of slides that are looked at in one go, 32 MiB as counts


@card(
    title="Concordance index",
    symbol="C",
    direction="higher",
    range=(0.0, 1.0),
    needs="one risk, time and event per slide",
    does_not_show="calibration, or how well the two sides of a cut are separated",
    source="Harrell et al., 1982",
)
def c_index(risk: ArrayLike, time: ArrayLike, event: ArrayLike) -> float:
    r"""Harrell's C: share of comparable pairs in which the higher risk comes first.

    .. math:: C = \frac{\sum_{i,j} \mathbf{1}[t_i < t_j]\,\delta_i\,(\mathbf{1}[r_i > r_j] +
       \tfrac12 \mathbf{1}[r_i = r_j])}{\sum_{i,j} \mathbf{1}[t_i < t_j]\,\delta_i}

    Of two equal times the one with an event comes before the censored one. NaN where no pair can be
    compared.

    >>> c_index([3.0, 1.0, 2.0], time=[1, 5, 3], event=[1, 0, 1])
    1.0
    """
    f, t, seen = _survival(risk, time, event)
    return float(_concordance(f, t, seen, np.ones((1, len(f)), dtype=np.uint8))[0])


@card(
    title="Coefficient of determination",
    symbol="R^2",
    direction="higher",
    range=(-np.inf, 1.0),
    needs="one prediction and one value per slide",
    does_not_show="whether the order is right where the scale is off",
)
def r_squared(predicted: ArrayLike, value: ArrayLike) -> float:
    r"""Share of the variance that the predictions explain; negative where the mean does better.

    .. math:: R^2 = 1 - \frac{\sum_s (y_s - f_s)^2}{\sum_s (y_s - \bar y)^2}

    >>> r_squared([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.7857142857142857
    """
    f, y = inputs.as_float_array(predicted, "predicted"), inputs.as_float_array(value, "value")
    inputs.same_length(predicted=f, value=y)
    spread = float(((y - y.mean()) ** 2).sum())
    return 1 - float(((y - f) ** 2).sum()) / spread if spread else float("nan")


def survival_curve(time: Floats, event: Floats) -> tuple[Floats, Floats]:
    r"""Kaplan and Meier's estimate: times at which an event was seen, and the share alive after.

    .. math:: S(t) = \prod_{t_i \le t} \Big(1 - \frac{d_i}{n_i}\Big)

    with :math:`d_i` events at the time :math:`t_i` among :math:`n_i` still at risk.

    >>> survival_curve(np.array([1.0, 2.0, 2.0, 3.0]), np.array([1, 1, 0, 1]))[1].tolist()
    [0.75, 0.5, 0.0]
    """
    times = np.unique(time[event == 1])
    at_risk = (time[None, :] >= times[:, None]).sum(axis=1)
    died = ((time[None, :] == times[:, None]) & (event == 1)[None, :]).sum(axis=1)
    return times, np.cumprod(1 - died / at_risk)


def macro_auc(scores: ArrayLike, labels: ArrayLike) -> float:
    r"""Mean of the AUCs of independent labels, from scores and marks ``[S, L]``.

    .. math:: \mathrm{AUC}_\mathrm{macro} = L^{-1} \sum_l \Pr[f_l(i) > f_l(j)] +
       \tfrac12 \Pr[f_l(i) = f_l(j)], \quad y_{il} = 1,\ y_{jl} = 0

    Labels that all slides have, or none (:func:`constant_labels`), are left out; NaN where no label
    is left.

    >>> macro_auc([[0.9, 0.2], [0.1, 0.3], [0.8, 0.1]], [[1, 0], [0, 1], [0, 0]])
    1.0
    """
    f, y = _labelled(scores, labels)
    return float(_macro_aucs(f, y, np.ones((1, len(f)), dtype=np.int64))[0])


def constant_labels(labels: ArrayLike) -> Marks:
    """``[L]`` labels that all slides have, or none, from marks ``[S, L]``.

    >>> constant_labels([[1, 0], [1, 1]]).tolist()
    [True, False]
    """
    constant: Marks = np.ptp(np.asarray(labels, dtype=np.float64), axis=0) == 0
    return constant


def macro_auc_interval(
    scores: ArrayLike, labels: ArrayLike, cases: Sequence[Any], **drawn: Any
) -> Interval:
    """:func:`macro_auc` with its interval over patients, drawn as in :func:`weighted_interval`.

    All labels of all slides of a patient are drawn together. A label that is constant in a draw is
    left out of it.
    """
    f, y = _labelled(scores, labels)

    def statistic(weights: Weights) -> Floats:
        return _macro_aucs(f, y, weights.astype(np.int64))

    return weighted_interval(statistic, cases, at_once=_AT_ONCE, **drawn)


def c_index_interval(
    risk: ArrayLike, time: ArrayLike, event: ArrayLike, cases: Sequence[Any], **drawn: Any
) -> Interval:
    """:func:`c_index` with its interval over patients, drawn as in :func:`weighted_interval`."""
    f, t, seen = _survival(risk, time, event)

    def statistic(weights: Weights) -> Floats:
        return _concordance(f, t, seen, weights)

    return weighted_interval(statistic, cases, at_once=_AT_ONCE, **drawn)


def r_squared_interval(
    predicted: Floats, value: Floats, cases: Sequence[Any], **drawn: Any
) -> Interval:
    """:func:`r_squared` with its interval over patients, drawn as in :func:`weighted_interval`."""

    def statistic(weights: Weights) -> Floats:
        rows = (np.repeat(np.arange(len(predicted)), own) for own in weights)
        return np.array([r_squared(predicted[own], value[own]) for own in rows])

    return weighted_interval(statistic, cases, at_once=_AT_ONCE, **drawn)


def _survival(
    risk: ArrayLike, time: ArrayLike, event: ArrayLike
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    f, t = inputs.as_float_array(risk, "risk"), inputs.as_float_array(time, "time")
    seen = np.asarray(event, dtype=np.float64)
    inputs.same_length(risk=f, time=t, event=seen)
    inputs.require((t > 0).all(), "time", "holds one that is not positive", "give times above 0")
    marks = np.isin(seen, (0.0, 1.0)).all()
    inputs.require(marks, "event", "holds something else than 0 and 1", "mark events with 1")
    return f, t, seen.astype(bool)


def _labelled(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    f = inputs.as_float_array(scores, "scores", ndim=2)
    y = inputs.as_float_array(labels, "labels", ndim=2)
    what = f"has shape {y.shape}, scores have {f.shape}"
    inputs.require(f.shape == y.shape, "labels", what, "mark every label of every slide")
    inputs.require(np.isin(y, (0, 1)).all(), "labels", "holds more than 0 and 1", "mark with 1")
    return f, y


def _macro_aucs(f: Floats, y: Floats, weights: Integers) -> Floats:
    """``[B]`` macro AUC, slide s counting ``weights[:, s]`` times."""
    columns = zip(f.T, y.T == 1, strict=True)
    return defined_mean(np.stack([binary_auc(*own, weights) for own in columns]), axis=0)


def _concordance(f: Floats, t: Floats, seen: Marks, weights: Weights) -> Floats:
    """``[B]`` Harrell's C, slide s counting ``weights[:, s]`` times; NaN without a pair to compare.

    From the last time to the first, slides enter a Fenwick tree over their risks: it tells how many
    of those that lived longer have a lower risk in log S steps, for all draws at once.
    """
    risks, rank = np.unique(f, return_inverse=True)
    own = weights.T.astype(np.int64)  # [S, B]
    tree = np.zeros((len(risks) + 1, len(weights)), np.int64)
    entered, twice_right, pairs = np.zeros((3, len(weights)), np.int64)

    def lower(place: int) -> Integers:
        total: Integers = np.zeros(len(weights), np.int64)
        while place:
            total += tree[place]
            place &= place - 1
        return total

    def enter(slides: Integers) -> None:
        for slide in slides:
            place = int(rank[slide]) + 1
            while place < len(tree):
                tree[place] += own[slide]
                place += place & -place
        entered[:] += own[slides].sum(axis=0)

    order = np.argsort(-t, kind="stable")
    for together in np.split(order, np.flatnonzero(np.diff(t[order])) + 1):
        enter(together[~seen[together]])  # of equal times the event comes first
        for slide in together[seen[together]]:
            place = int(rank[slide])
            twice_right += own[slide] * (lower(place) + lower(place + 1))
            pairs += own[slide] * entered
        enter(together[seen[together]])
    undefined = np.full(len(weights), np.nan)
    found: Floats = np.divide(twice_right / 2, pairs, out=undefined, where=pairs > 0)
    return found
