"""One verdict per cohort and classifier, with the numbers behind it."""

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
from foci.metrics.stats import Interval, case_means, percentile_interval

VerdictName = Literal["headroom", "saturated", "conflict", "uninformative native ranking"]


def decide(
    room: Interval,
    gain_over_native: Interval,
    gain_over_random: Interval,
    random_over_native: Interval,
    margin: float = 0.5,
) -> VerdictName:
    """The rule, on paired intervals of restricted mean K.

    *A beats B* where the whole interval of B - A lies above 0. The native ranking is
    *near-minimal* unless the whole interval of ``room`` lies above ``margin``: half a tile above
    the fewest possible is nothing, and who claims room has to show it. In this order:

    1. native near-minimal                          -> ``saturated``
    2. native beats the selector                    -> ``conflict``
    3. selector beats native, and beats random      -> ``headroom``
    4. selector beats native, does not beat random  -> ``uninformative native ranking``
    5. neither, and random beats native             -> ``uninformative native ranking``
    6. neither, and random does not beat native     -> ``saturated`` (for this selector: there is
       room, and it finds none of it)

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
    """The verdict, one plain sentence, and the tile counts it rests on.

    Every count is a restricted mean over all slides: a slide that never reaches counts as K_max.
    Give the counts of the predicted-class view: with the label as target, random orders reach
    misclassified slides by accident.

    Attributes:
        verdict: One of four, see :func:`foci.metrics.decide`.
        sentence: The same for people.
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
        n_slides: Slides judged.
        n_unreached: Those that no ranking reaches: they count as K_max in every mean.
        n_cases: Patients they come from.
    """

    verdict: VerdictName
    sentence: str
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
    """Compute restricted means and their paired patient intervals, then :func:`decide`.

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
    draws = case_means(differences, cases, n_boot, seed)
    intervals = [
        percentile_interval(float(column.mean()), drawn, level)
        for column, drawn in zip(differences.T, draws.T, strict=True)
    ]
    room, over_native, over_random, random_over_native = intervals
    verdict = decide(room, over_native, over_random, random_over_native, margin)
    n_unreached = n_slides - int(reached.sum())
    said = _sentence(
        verdict, room, over_native, over_random, random_over_native, margin,
        first_count=first_count, mostly_unreached=2 * n_unreached > n_slides,
    )  # fmt: skip
    return Verdict(
        verdict=verdict,
        sentence=_with_unreached(said, n_unreached, n_slides, k_max),
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
        n_unreached=n_unreached,
        n_cases=np.unique(np.asarray(cases)).size,
    )


_NONE = "No ranking judged here"
_ADVICE = "look at Reach, lower kappa or raise K_max"


def _with_unreached(sentence: str, unreached: int, n_slides: int, k_max: int) -> str:
    """The sentence, and how many slides no ranking reaches; first if they are most of them."""
    within = f"within {k_max} tile{'s' * (k_max != 1)}"
    if unreached == n_slides:
        return f"{_NONE} makes the model sure of any slide {within}: nothing to compare; {_ADVICE}."
    share = f"{unreached} of {n_slides} slides ({unreached / n_slides:.0%})"
    if 2 * unreached > n_slides:
        return (
            f"{_NONE} makes the model sure of {share} {within}: there no measured count of "
            f"tiles recovers its decision; {_ADVICE}. {sentence}"
        )
    return f"{sentence} {_NONE} reaches {share}, counted as {k_max}." if unreached else sentence


def _sentence(
    verdict: VerdictName,
    room: Interval,
    over_native: Interval,
    over_random: Interval,
    random_over_native: Interval,
    margin: float,
    *,
    first_count: int,
    mostly_unreached: bool,
) -> str:
    fewest = "possible" if first_count == 1 else f"that counts from {first_count} on can show"
    left = f"{_tiles(room)} above the fewest {fewest}"
    if verdict == "headroom":
        return (
            f"The selector needs {_tiles(over_native)} fewer than the native ranking and "
            f"{_tiles(over_random)} fewer than a random order."
        )
    if verdict == "conflict":
        return (
            f"The selector needs {_tiles(over_native, -1)} more than the native ranking: "
            "keep the native ranking."
        )
    if verdict == "uninformative native ranking":
        if over_native.above():
            return (
                f"The selector needs {_tiles(over_native)} fewer than the native ranking, but is "
                "not shown to beat a random order: the native ranking is what is weak."
            )
        return (
            f"A random order needs {_tiles(random_over_native)} fewer than the native ranking, "
            "and the selector is not shown to do better."
        )
    if room.above(margin):
        return (
            f"The native ranking is {left}, but the selector is neither shown to be better nor "
            "worse: it finds nothing of that."
        )
    worse = " The selector is worse: keep the native ranking." if over_native.below() else ""
    if mostly_unreached:
        return f"The other slides are too few to say more.{worse}"
    seen = "" if first_count == 1 else " that these counts can show"
    why = (
        f"there is nothing to gain{seen}" if room.estimate <= margin else "too few patients to tell"
    )
    return f"The native ranking is {left}, not shown to exceed {margin:g}: {why}.{worse}"


def _tiles(interval: Interval, sign: int = 1) -> str:
    low, high = sorted((sign * interval.low, sign * interval.high))
    return f"{sign * interval.estimate:.1f} tiles ({low:.1f} to {high:.1f})"
