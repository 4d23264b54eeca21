"""The rule behind the verdict: four names over the whole decision space."""

from __future__ import annotations

import math
from typing import Literal

from foci.metrics import inputs
from foci.metrics.stats import Interval

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
