"""How well a risk or a number fits what was observed: C-index and R2.

Each has an interval by resampling patients: all slides of a patient are drawn together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.cohort import auc
from foci.metrics.inputs import Floats
from foci.metrics.stats import Interval, case_draws, draws_between, percentile_interval


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
    right, pairs = _concordance(*_survival(risk, time, event))
    return float(right.sum() / pairs.sum()) if pairs.any() else float("nan")


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
    """Mean of the AUCs of independent labels, from scores and marks ``[S, L]``.

    Labels that all slides have, or none, are left out; NaN where no label is left.

    >>> macro_auc([[0.9, 0.2], [0.1, 0.3], [0.8, 0.1]], [[1, 0], [0, 1], [0, 0]])
    1.0
    """
    f, y = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    known = [own for own in range(f.shape[1]) if len(np.unique(y[:, own])) == 2]
    aucs = [auc(f[:, own], y[:, own].astype(np.int64)) for own in known]
    return float(np.mean(aucs)) if aucs else float("nan")


def c_index_interval(
    risk: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
    cases: Sequence[Any],
    *,
    n_boot: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """:func:`c_index` with its interval over patients."""
    f, t, seen = _survival(risk, time, event)
    right, pairs = _concordance(f, t, seen)
    case, drawn = case_draws(cases, len(f), n_boot, seed)
    weights = drawn[:, case].astype(np.float64)
    over, under = (((weights @ m) * weights).sum(axis=1) for m in (right, pairs))
    draws = np.divide(over, under, out=np.full(len(over), np.nan), where=under > 0)
    return percentile_interval(c_index(f, t, seen), draws_between(draws, cases), level)


def r_squared_interval(
    predicted: Floats,
    value: Floats,
    cases: Sequence[Any],
    *,
    n_boot: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """:func:`r_squared` with its interval over patients."""
    case, drawn = case_draws(cases, len(predicted), n_boot, seed)
    rows = (np.repeat(np.arange(len(predicted)), weights) for weights in drawn[:, case])
    draws = np.array([r_squared(predicted[own], value[own]) for own in rows])
    return percentile_interval(r_squared(predicted, value), draws_between(draws, cases), level)


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


def _concordance(f: Floats, t: Floats, seen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Pairs ``[S, S]`` whose first came first: how right each is, and whether it counts."""
    before = (t[:, None] < t) | ((t[:, None] == t) & ~seen)
    pairs = (before & seen[:, None]).astype(np.float64)
    right = pairs * ((f[:, None] > f) + 0.5 * (f[:, None] == f))
    return right, pairs
