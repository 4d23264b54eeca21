"""The rules behind an audit's answers: is the map believable, is there a better order?

Both read comparisons on two axes over decided slides, *sufficiency* (MSK) and *necessity* (decisive
K, or deletion area), and how an order does beside maps that know nothing (:func:`null_pvalue`). An
axis that cannot be compared is None. Where the second order already needs one tile on half of the
slides, no order can be better than it; the axis is then not informative, and counts only if the
first order is worse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.compare import ROUNDING, AxisResult

Belief = Literal[
    "yes",
    "only as a pointer",
    "sufficient, not decisive",
    "no better than a content-free map",
    "no better than chance",
    "worse than chance",
    "inconclusive",
    "not assessable",
]
"""Answers to "Can I believe the map?"."""

BELIEVED = ("yes", "only as a pointer", "sufficient, not decisive")
"""Answers that show a map as believable, in whole or in part."""

BetterOrder = Literal[
    "headroom",
    "mixed",
    "native is better",
    "native suffices",
    "no better order found",
    "inconclusive",
    "not assessable",
]
"""Answers to "Is there a better order?"."""

MIN_CASES = 6
MIN_D = 0.1
"""Net share of slides from which a difference counts, however sure it is."""

NOT_SUPERIOR = 0.2
"""A map whose net share over random orders is surely below this is no better than chance."""

EFFICIENT = 0.8
"""Mean share of the proven minimum in a map's deciding sets from which there is no better order."""

NULL_LEVEL = 0.05
"""Largest p beside content-free maps at which a map is believed."""


@dataclass(frozen=True)
class AxisEvidence:
    """What a rule reads of one comparison.

    Attributes:
        result: Of :class:`foci.metrics.NetShare`.
        d, high: Its net share of slides, and the upper end.
        informative: False where the second order already needs one tile on half of the slides.
        sized: Whether a difference is large enough to matter: a tenth fewer tiles, say.
    """

    result: AxisResult
    d: float
    high: float
    informative: bool = True
    sized: bool = True

    @property
    def better(self) -> bool:
        """Better beyond doubt, whatever the size."""
        return self.informative and self.result == "better"

    @property
    def clearly_better(self) -> bool:
        """Better beyond doubt, and by a net share that counts."""
        return self.better and self.d >= MIN_D - ROUNDING

    @property
    def clearly_worse(self) -> bool:
        """Worse beyond doubt, and by a net share that counts."""
        return self.result == "worse" and self.d <= -MIN_D + ROUNDING


Axis: TypeAlias = AxisEvidence | None
"""What was found on an axis; None where it cannot be compared."""


def null_pvalue(d: float, null_ds: ArrayLike) -> float:
    r"""p-value of a map beside M maps that know nothing, all against the same random orders.

    .. math:: p = \frac{1 + \#\{m : D_m \ge D\}}{M + 1}

    >>> null_pvalue(0.5, [0.1] * 38 + [0.5])
    0.05
    """
    own, others = inputs.as_float_array(d, "d", ndim=0), inputs.as_float_array(null_ds, "null_ds")
    return (1 + int((others >= own - ROUNDING).sum())) / (len(others) + 1)


def believable(
    sufficiency: Axis,
    necessity: Axis,
    *,
    null_p: float | None,
    n_cases: int,
    tied: bool = False,
) -> Belief:
    """Can I believe the map? Rule for a map compared with random orders; the first that holds.

    =====================================  ====================================================
    ``not assessable``                     fewer than 6 patients with decided slides, no axis that
                                           counts, or a map whose first tiles are tied
    ``worse than chance``                  worse on an axis, and better on none by more
    ``yes``                                better on every axis that counts
    ``only as a pointer``                  better on necessity, not on sufficiency
    ``sufficient, not decisive``           better on sufficiency, not on necessity
    ``no better than a content-free map``  better, but not than maps that know nothing
    ``no better than chance``              surely better by less than 0.2 on every axis that can
                                           tell
    ``inconclusive``                       otherwise
    =====================================  ====================================================

    Better and worse mean by the test and by a net share of at least 0.1; an axis that is unclear
    leaves the question open. The three answers that believe a map need ``null_p`` of at most 0.05;
    None, where no such maps were run, leaves the question open, too.

    >>> ahead, behind = AxisEvidence("better", 0.6, 0.8), AxisEvidence("worse", -0.3, -0.1)
    >>> believable(ahead, ahead, null_p=0.025, n_cases=30)
    'yes'
    >>> believable(behind, ahead, null_p=0.025, n_cases=30)
    'only as a pointer'
    >>> believable(ahead, ahead, null_p=0.1, n_cases=30)
    'no better than a content-free map'
    >>> believable(behind, None, null_p=0.025, n_cases=30)
    'worse than chance'
    """
    axes = _counting(sufficiency, necessity)
    if not axes or tied or inputs.as_int(n_cases, "n_cases", lowest=0) < MIN_CASES:
        return "not assessable"
    losses = [-axis.d for axis in axes if axis.clearly_worse]
    gains = [axis.d for axis in axes if axis.better]
    if losses and max(losses) >= max(gains, default=0.0):
        return "worse than chance"
    if gains and null_p is None:
        return "inconclusive"
    ahead = [axis for axis in axes if axis.clearly_better]
    if ahead and null_p is not None and null_p <= NULL_LEVEL + ROUNDING:
        others = [axis for axis in axes if axis not in ahead]
        if not others:
            return "yes"
        if all(axis.result != "unclear" for axis in others):
            return "only as a pointer" if necessity in ahead else "sufficient, not decisive"
        return "inconclusive"
    if gains and null_p is not None and null_p > NULL_LEVEL + ROUNDING:
        return "no better than a content-free map"
    informative = [axis for axis in axes if axis.informative]
    if informative and all(axis.high < NOT_SUPERIOR for axis in informative):
        return "no better than chance"
    return "inconclusive"


def better_order(
    sufficiency: Axis,
    necessity: Axis,
    *,
    sufficiency_over_random: Axis,
    necessity_over_random: Axis,
    null_p: float | None,
    belief: Belief | None,
    n_cases: int,
) -> BetterOrder:
    """Is there a better order? Rule for a candidate compared with the map; the first that holds.

    ===========================  ==============================================================
    ``not assessable``           fewer than 6 patients with decided slides, or no axis that counts
    ``mixed``                    better on one axis, worse on the other
    ``native is better``         worse on one axis, better on none
    ``headroom``                 better on one axis by a size that matters, not worse on the other,
                                 better than random orders on that axis, and better than
                                 content-free maps
    ``native suffices``          no difference that matters on any axis, and the map is believable
    ``no better order found``    the same, and it is not
    ``inconclusive``             otherwise
    ===========================  ==============================================================

    The arguments ``..._over_random`` are the candidate's comparison with random orders, ``null_p``
    is that of the candidate, ``belief`` the map's answer of :func:`believable`, or None.

    >>> ahead, same = AxisEvidence("better", 0.6, 0.8), AxisEvidence("same", 0.0, 0.05)
    >>> chance = {"sufficiency_over_random": None, "necessity_over_random": ahead, "null_p": 0.025}
    >>> better_order(None, ahead, **chance, belief="yes", n_cases=30)
    'headroom'
    >>> better_order(None, same, **chance, belief="yes", n_cases=30)
    'native suffices'
    """
    axes = _counting(sufficiency, necessity)
    if not axes or inputs.as_int(n_cases, "n_cases", lowest=0) < MIN_CASES:
        return "not assessable"
    if any(axis.clearly_worse for axis in axes):
        sized = any(axis.clearly_better and axis.sized for axis in axes)
        return "mixed" if sized else "native is better"
    content = null_p is not None and null_p <= NULL_LEVEL + ROUNDING
    pairs = ((sufficiency, sufficiency_over_random), (necessity, necessity_over_random))
    for axis, chance in pairs:
        ahead = axis is not None and axis.clearly_better and axis.sized
        if ahead and chance is not None and chance.clearly_better and content:
            return "headroom"
    if all(_no_difference(axis) for axis in axes):
        return "native suffices" if belief == "yes" else "no better order found"
    return "inconclusive"


def better_than_proven(low: float | None, high: float | None, n_cases: int) -> BetterOrder:
    """Is there a better order, where the best one is proven? By the map's efficiency.

    ===================  ==========================================================
    ``not assessable``   fewer than 6 patients, or no interval
    ``native suffices``  the lower end of the interval is at least 0.8
    ``headroom``         the upper end is below 0.8
    ``inconclusive``     otherwise
    ===================  ==========================================================

    >>> better_than_proven(0.85, 0.95, 30), better_than_proven(0.3, 0.5, 30)
    ('native suffices', 'headroom')
    """
    if inputs.as_int(n_cases, "n_cases", lowest=0) < MIN_CASES or low is None or high is None:
        return "not assessable"
    if low >= EFFICIENT - ROUNDING:
        return "native suffices"
    return "headroom" if high < EFFICIENT - ROUNDING else "inconclusive"


def _counting(*axes: Axis) -> list[AxisEvidence]:
    """Axes that can tell two orders apart, or do: one that is not informative may show worse."""
    return [axis for axis in axes if axis is not None and (axis.informative or axis.clearly_worse)]


def _no_difference(axis: AxisEvidence) -> bool:
    """Whether the orders are the same, or differ by too little to matter; none is clearly worse."""
    small = axis.result in ("better", "worse") and not (axis.clearly_better and axis.sized)
    return axis.result == "same" or small


def conclusive(answer: Belief | BetterOrder) -> bool:
    """Whether an answer decides its question.

    >>> conclusive("headroom"), conclusive("inconclusive"), conclusive("not assessable")
    (True, False, False)
    """
    return answer not in ("inconclusive", "not assessable")


def sensitive(answers_by_kappa: Mapping[float, Belief | BetterOrder]) -> bool:
    """Whether an answer depends on kappa: two different conclusive answers.

    ``inconclusive`` at another kappa is no contradiction.

    >>> sensitive({0.8: "headroom", 0.9: "inconclusive"})
    False
    >>> sensitive({0.8: "headroom", 0.9: "native suffices"})
    True
    """
    return len({answer for answer in answers_by_kappa.values() if conclusive(answer)}) > 1
