"""The rules behind an audit's answers: is the map believable, is there a better order?

Both read results on two axes over decided slides, *sufficiency* (MSK) and *necessity* (decisive K,
or deletion area), from :func:`foci.metrics.compare_orders`. An axis that does not count is None:
sufficiency where :func:`foci.metrics.already_minimal` holds, necessity where no class has decisive
sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from foci.metrics import inputs
from foci.metrics.compare import AxisResult

Belief = Literal[
    "yes",
    "only as a pointer",
    "sufficient, not decisive",
    "no better than chance",
    "inconclusive",
    "not assessable",
]
"""Answers to "Can I believe the map?"."""

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

Axis: TypeAlias = AxisResult | None
"""Result on an axis; None where the axis does not count."""

MIN_CASES = 6


def believable(sufficiency: Axis, necessity: Axis, *, n_cases: int) -> Belief:
    """Can I believe the map? Rule for a ranking compared with random orders.

    ===========================  ==============================================================
    ``not assessable``           fewer than 6 patients with decided slides, or no axis counts
    ``yes``                      better on every axis that counts
    ``only as a pointer``        better on necessity, same or worse on sufficiency
    ``sufficient, not decisive`` better on sufficiency, same or worse on necessity
    ``no better than chance``    better on none, unclear on none
    ``inconclusive``             otherwise
    ===========================  ==============================================================

    >>> believable("better", "better", n_cases=30), believable("worse", "better", n_cases=30)
    ('yes', 'only as a pointer')
    """
    axes = _counting(sufficiency, necessity)
    if not axes or inputs.as_int(n_cases, "n_cases", lowest=0) < MIN_CASES:
        return "not assessable"
    if set(axes) == {"better"}:
        return "yes"
    if "unclear" in axes:
        return "inconclusive"
    if necessity == "better":
        return "only as a pointer"
    if sufficiency == "better":
        return "sufficient, not decisive"
    return "no better than chance"


def better_order(
    sufficiency: Axis,
    necessity: Axis,
    *,
    sufficiency_over_random: Axis,
    necessity_over_random: Axis,
    belief: Belief | None,
    n_cases: int,
) -> BetterOrder:
    """Is there a better order? Rule for a candidate compared with the native ranking.

    ===========================  ==============================================================
    ``not assessable``           fewer than 6 patients with decided slides, or no axis counts
    ``mixed``                    better on one axis, worse on the other
    ``headroom``                 better on one axis, not worse on the other, and better than random
                                 orders on that axis
    ``native is better``         worse on one axis, better on none
    ``native suffices``          same on every axis that counts, and the map is believable (yes)
    ``no better order found``    same on every axis that counts, and it is not
    ``inconclusive``             otherwise
    ===========================  ==============================================================

    The arguments ``..._over_random`` are the candidate's comparison with random orders, ``belief``
    is the native ranking's answer of :func:`believable`, or None.

    >>> against_random = {"sufficiency_over_random": None, "necessity_over_random": "better"}
    >>> better_order(None, "better", **against_random, belief="yes", n_cases=30)
    'headroom'
    >>> better_order(None, "same", **against_random, belief="yes", n_cases=30)
    'native suffices'
    """
    axes = _counting(sufficiency, necessity)
    _counting(sufficiency_over_random, necessity_over_random)
    if not axes or inputs.as_int(n_cases, "n_cases", lowest=0) < MIN_CASES:
        return "not assessable"
    if "worse" in axes:
        return "mixed" if "better" in axes else "native is better"
    pairs = ((sufficiency, sufficiency_over_random), (necessity, necessity_over_random))
    if ("better", "better") in pairs:
        return "headroom"
    if set(axes) == {"same"}:
        return "native suffices" if belief == "yes" else "no better order found"
    return "inconclusive"


def _counting(*axes: Axis) -> tuple[AxisResult, ...]:
    """Results on the axes that count."""
    for axis in axes:
        known = axis in ("better", "worse", "same", "unclear", None)
        inputs.require(known, "axis", f"is {axis!r}", "pass a comparison's result, or None")
    return tuple(axis for axis in axes if axis is not None)


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
