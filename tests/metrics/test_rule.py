"""The rule covers the whole decision space, branch by branch."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.metrics import Interval, VerdictName, decide
from tests.metrics.strategies import quick

SHOWN, TIE, WORSE = Interval(3, 2, 4), Interval(0, -1, 1), Interval(-3, -4, -2)
SMALL = Interval(0.3, 0.2, 0.4)

intervals = st.tuples(st.floats(-300, 300), st.floats(-300, 300)).map(
    lambda ends: Interval(sum(ends) / 2, min(ends), max(ends))
)


@pytest.mark.parametrize(
    ("room", "over_native", "over_random", "random_over_native", "verdict"),
    [
        (SMALL, SHOWN, SHOWN, TIE, "saturated"),
        (SMALL, WORSE, WORSE, TIE, "saturated"),
        (SHOWN, WORSE, SHOWN, TIE, "conflict"),
        (SHOWN, WORSE, WORSE, SHOWN, "conflict"),
        (SHOWN, SHOWN, SHOWN, SHOWN, "headroom"),
        (SHOWN, SHOWN, TIE, TIE, "uninformative native ranking"),
        (SHOWN, SHOWN, WORSE, SHOWN, "uninformative native ranking"),
        (SHOWN, TIE, TIE, SHOWN, "uninformative native ranking"),
        (SHOWN, TIE, SHOWN, TIE, "saturated"),
        (SHOWN, TIE, TIE, WORSE, "saturated"),
    ],
)
def test_every_branch(
    room: Interval,
    over_native: Interval,
    over_random: Interval,
    random_over_native: Interval,
    verdict: VerdictName,
) -> None:
    assert decide(room, over_native, over_random, random_over_native) == verdict


@quick
@given(intervals, intervals, intervals, intervals, st.floats(0, 10))
def test_the_rule_is_total(
    room: Interval, native: Interval, random: Interval, chance: Interval, margin: float
) -> None:
    verdict = decide(room, native, random, chance, margin)
    assert verdict in get_args(VerdictName)
    if verdict == "headroom":
        assert room.above(margin)
        assert native.above()
        assert random.above()
    if verdict == "conflict":
        assert native.below()
    if verdict == "uninformative native ranking":
        assert native.above() or chance.above()
    if not room.above(margin):
        assert verdict == "saturated"


def test_an_interval_that_touches_zero_shows_nothing() -> None:
    touching = Interval(1, 0, 2)
    assert decide(SHOWN, touching, SHOWN, TIE) == "saturated"


def test_the_margin_is_in_tiles() -> None:
    assert decide(SMALL, SHOWN, SHOWN, TIE, margin=0.1) == "headroom"
    assert decide(SHOWN, SHOWN, SHOWN, TIE, margin=2.0) == "saturated"
