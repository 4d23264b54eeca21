"""The verdict on a cohort and its classifier: the rule, and the numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.metrics import inputs
from foci.metrics.curve.censoring import restricted
from foci.metrics.inputs import Counts
from foci.metrics.stats import Interval, mean_intervals

VerdictName = Literal["headroom", "saturated", "conflict", "uninformative native ranking"]


def decide(
    room: Interval,
    gain_over_native: Interval,
    gain_over_random: Interval,
    random_over_native: Interval,
    margin: float = 0.5,
) -> VerdictName:
    """Decision rule of the verdict, on paired intervals of restricted mean K.

    *A beats B* where the whole interval of B - A lies above 0. The native ranking is
    *near-minimal* unless the whole interval of ``room`` lies above ``margin``: half a tile above
    the fewest possible is nothing, and room has to be shown before it is claimed. In this order:

    1. native near-minimal                          -> ``saturated``
    2. native beats the selector                    -> ``conflict``
    3. selector beats native, and beats random      -> ``headroom``
    4. selector beats native, does not beat random  -> ``uninformative native ranking``
    5. neither, and random beats native             -> ``uninformative native ranking``
    6. neither, and random does not beat native     -> ``saturated`` (for this selector: there is
       room, but it finds none)

    Args:
        room: native - fewest possible (the first measured count, or a greedy search).
        gain_over_native: native - selector.
        gain_over_random: random - selector.
        random_over_native: native - random.
        margin: Tiles that count as nothing.

    >>> gain, tie = Interval(3.0, 2.0, 4.0), Interval(0.0, -1.0, 1.0)
    >>> decide(room=gain, gain_over_native=gain, gain_over_random=gain, random_over_native=tie)
    'headroom'
    >>> decide(room=gain, gain_over_native=gain, gain_over_random=tie, random_over_native=gain)
    'uninformative native ranking'
    """
    _check(margin, room, gain_over_native, gain_over_random, random_over_native)
    if not room.above(margin):
        return "saturated"
    if gain_over_native.below():
        return "conflict"
    if gain_over_native.above():
        return "headroom" if gain_over_random.above() else "uninformative native ranking"
    return "uninformative native ranking" if random_over_native.above() else "saturated"


def _check(margin: float, *intervals: Interval) -> None:
    inputs.require(0 <= margin < math.inf, "margin", f"is {margin}", "pass tiles, 0 or more")
    for interval in intervals:
        what = f"runs from {interval.low} to {interval.high}"
        inputs.require(interval.low <= interval.high, "interval", what, "give low before high")


@dataclass(frozen=True)
class Verdict:
    """The verdict and the tile counts it rests on.

    Every count is a restricted mean over all slides: a slide that never reaches counts as K_max.
    The target is the predicted class: with the label as target, random orders reach misclassified
    slides by accident.

    Attributes:
        verdict: One of four, see :func:`foci.metrics.decide`.
        native: Tiles under the classifier's own ranking.
        selector: Tiles under the selector.
        random: Tiles under random orders, averaged over the orders.
        floor: The fewest tiles possible: the first count that was revealed, or what a greedy search
            found; K_max on a slide that nothing reaches.
        room: native - floor, with its interval.
        gain_over_native: native - selector.
        gain_over_random: random - selector.
        random_over_native: native - random.
        near_minimal: Whether ``room`` is not shown to exceed ``margin``.
        margin: Tiles that count as nothing.
        k_max: Where counts are censored.
        first_count: The first count that was revealed.
        n_slides: Slides compared.
        n_unreached: Slides that no ranking reaches: they count as K_max in every mean.
        n_cases: Patients the slides come from.
    """

    verdict: VerdictName
    native: float
    selector: float
    random: float
    floor: float
    room: Interval
    gain_over_native: Interval
    gain_over_random: Interval
    random_over_native: Interval
    near_minimal: bool
    margin: float
    k_max: int
    first_count: int
    n_slides: int
    n_unreached: int
    n_cases: int


def judge(
    native: Counts,
    selector: Counts,
    random: ArrayLike,
    cases: Sequence[Any] | NDArray[Any],
    *,
    greedy: Counts | None = None,
    first_count: int = 1,
    k_max: int = 256,
    margin: float = 0.5,
    n_boot: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Verdict:
    """Verdict from MSK per slide: restricted means, their paired intervals, then :func:`decide`.

    Args:
        native: MSK of every slide under the native ranking, None where not reached.
        selector: The same slides under the selector.
        random: ``[R, S]``, the same slides under R random orders, NaN where not reached.
        cases: The patient of every slide.
        greedy: MSK of a greedy search, if there was one; without it the floor is ``first_count``.
        first_count: The first count that was revealed: below it nothing was measured, so no room is
            claimed there.
        k_max: Where counts are censored.
        margin: Tiles that count as nothing.
        n_boot: Bootstrap draws.
        level: Coverage of the intervals.
        seed: Seeds the draws.

    >>> slides = range(40)
    >>> result = judge([9] * 40, [2] * 40, [[5] * 40, [7] * 40], cases=slides, n_boot=200)
    >>> result.verdict, result.native, result.selector, result.random, result.floor
    ('headroom', 9.0, 2.0, 6.0, 1.0)
    """
    first, second = inputs.counts(native, "native"), inputs.counts(selector, "selector")
    orders = inputs.counts(random, "random", ndim=2)
    bound = np.full_like(first, np.nan) if greedy is None else inputs.counts(greedy, "greedy")
    n_slides = inputs.same_length(native=first, selector=second, random=orders[0], greedy=bound)
    fewest = np.fmin.reduce([first, second, bound, *orders])  # NaN if nothing reaches the slide
    reached = fewest <= k_max
    if greedy is None:
        lowest = float(inputs.whole(first_count, "first_count"))
        fewest = np.where(reached, np.fmin(fewest, lowest), np.nan)
    own, found, floor = (restricted(values, k_max) for values in (first, second, fewest))
    by_chance = np.mean([restricted(order, k_max) for order in orders], axis=0)
    differences = np.column_stack([own - floor, own - found, by_chance - found, own - by_chance])
    room, over_native, over_random, random_over_native = mean_intervals(
        differences, cases, n_boot=n_boot, level=level, seed=seed
    )
    return Verdict(
        verdict=decide(room, over_native, over_random, random_over_native, margin),
        native=float(own.mean()),
        selector=float(found.mean()),
        random=float(by_chance.mean()),
        floor=float(floor.mean()),
        room=room,
        gain_over_native=over_native,
        gain_over_random=over_random,
        random_over_native=random_over_native,
        near_minimal=not room.above(margin),
        margin=margin,
        k_max=k_max,
        first_count=first_count,
        n_slides=n_slides,
        n_unreached=n_slides - int(reached.sum()),
        n_cases=np.unique(np.asarray(cases)).size,
    )
