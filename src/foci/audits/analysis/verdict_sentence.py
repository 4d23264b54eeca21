"""Put the verdict into plain words."""

from __future__ import annotations

from foci.metrics import Interval, Verdict

_NONE = "No ranking compared here"
_ADVICE = "look at Reach, lower kappa or raise K_max"


def verdict_sentence(verdict: Verdict) -> str:
    """State the verdict with its numbers, and how many slides no ranking reaches.

    If these are most of the slides, they come first.

    >>> from foci.metrics import judge
    >>> print(verdict_sentence(judge([4] * 9, [9] * 9, [[12] * 9], cases=range(9))))
    The selector needs 5.0 tiles (5.0 to 5.0) more than the native ranking: keep the native ranking.
    """
    unreached, n_slides, k_max = verdict.n_unreached, verdict.n_slides, verdict.k_max
    within = f"within {k_max} tile{'s' * (k_max != 1)}"
    if unreached == n_slides:
        return f"{_NONE} makes the model sure of any slide {within}: nothing to compare; {_ADVICE}."
    said = _comparison(verdict)
    share = f"{unreached} of {n_slides} slides ({unreached / n_slides:.0%})"
    if _mostly_unreached(verdict):
        return (
            f"{_NONE} makes the model sure of {share} {within}: on these slides no measured count "
            f"of tiles recovers its decision; {_ADVICE}. {said}"
        )
    return f"{said} {_NONE} reaches {share}, counted as {k_max}." if unreached else said


def _mostly_unreached(verdict: Verdict) -> bool:
    return 2 * verdict.n_unreached > verdict.n_slides


def _comparison(verdict: Verdict) -> str:
    over_native, over_random = verdict.gain_over_native, verdict.gain_over_random
    if verdict.verdict == "headroom":
        return (
            f"The selector needs {_tiles(over_native)} fewer than the native ranking and "
            f"{_tiles(over_random)} fewer than a random order."
        )
    if verdict.verdict == "conflict":
        return (
            f"The selector needs {_tiles(over_native, -1)} more than the native ranking: "
            "keep the native ranking."
        )
    if verdict.verdict == "uninformative native ranking":
        if over_native.above():
            return (
                f"The selector needs {_tiles(over_native)} fewer than the native ranking, but is "
                "not shown to beat a random order: it is the native ranking that is weak."
            )
        return (
            f"A random order needs {_tiles(verdict.random_over_native)} fewer than the native "
            "ranking, and the selector is not shown to do better."
        )
    return _saturated(verdict)


def _saturated(verdict: Verdict) -> str:
    from_first = verdict.first_count == 1
    fewest = "possible" if from_first else f"that counts from {verdict.first_count} on can show"
    left = f"{_tiles(verdict.room)} above the fewest {fewest}"
    if not verdict.near_minimal:
        return (
            f"The native ranking is {left}, but the selector is shown to be neither better nor "
            "worse: it gains none of that."
        )
    worse = " The selector is worse: keep the native ranking."
    worse = worse if verdict.gain_over_native.below() else ""
    if _mostly_unreached(verdict):
        return f"The other slides are too few to say more.{worse}"
    seen = "" if from_first else " that these counts can show"
    nothing = verdict.room.estimate <= verdict.margin
    why = f"there is nothing to gain{seen}" if nothing else "too few patients to tell"
    return f"The native ranking is {left}, not shown to exceed {verdict.margin:g}: {why}.{worse}"


def _tiles(interval: Interval, sign: int = 1) -> str:
    low, high = sorted((sign * interval.low, sign * interval.high))
    return f"{sign * interval.estimate:.1f} tiles ({low:.1f} to {high:.1f})"
