"""The rule of the verdict branch by branch, and verdicts on cohorts whose answer is known."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.errors import FociError
from foci.metrics import Interval, Verdict, VerdictName, decide, judge, paired_bootstrap, restricted
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


N = 60
CASES = [f"P{i // 2}" for i in range(N)]  # two slides per patient


def counts(mean: float, seed: int, shape: tuple[int, ...] = (N,)) -> np.ndarray:
    return 1.0 + np.random.default_rng(seed).poisson(mean - 1, size=shape)


def verdict(native: float, selector: float, random: float, **settings: float) -> Verdict:
    chance = counts(random, 3, (10, N))
    return judge(counts(native, 1), counts(selector, 2), chance, CASES, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("native", "selector", "random", "name"),
    [
        (9, 2, 6, "headroom"),
        (4, 9, 12, "conflict"),
        (38, 17, 5, "uninformative native ranking"),
        (20, 20, 5, "uninformative native ranking"),
        (20, 20, 60, "saturated"),
        (1.0, 1.0, 3, "saturated"),
        (1.0, 4, 3, "saturated"),
    ],
)
def test_known_cohorts(native: float, selector: float, random: float, name: str) -> None:
    assert verdict(native, selector, random).verdict == name


def test_numbers_behind_it() -> None:
    native, selector = counts(9, 1), counts(2, 2)
    native[:3] = np.nan
    chance = counts(6, 3, (10, N))
    result = judge(native, selector, chance, CASES, k_max=32, seed=7)
    own = restricted(native, 32)
    assert result.native == own.mean()
    assert result.selector == selector.mean()
    assert result.random == pytest.approx(chance.mean())
    assert result.floor == 1
    by_chance = chance.mean(axis=0)
    for got, more, less in (
        (result.room, own, np.ones(N)),
        (result.gain_over_native, own, selector),
        (result.gain_over_random, by_chance, selector),
        (result.random_over_native, own, by_chance),
    ):
        want = paired_bootstrap(more, less, CASES, seed=7)
        assert (got.estimate, got.low, got.high) == pytest.approx(
            (want.estimate, want.low, want.high)
        )
    assert (result.n_slides, result.n_cases, result.k_max) == (N, N // 2, 32)
    assert result.near_minimal is False


def test_a_greedy_search_replaces_the_floor_of_one_tile() -> None:
    native = counts(5, 1)
    alone = judge(native, native, [native], CASES)
    assert (alone.floor, alone.near_minimal) == (1, False)
    bounded = judge(native, native, [native], CASES, greedy=np.maximum(native - 0.25, 1))
    assert bounded.floor == pytest.approx(np.maximum(native - 0.25, 1).mean())
    assert bounded.near_minimal


def test_a_greedy_search_that_fails_is_no_floor() -> None:
    native, selector = counts(5, 1), counts(3, 2)
    result = judge(native, selector, [native], CASES, greedy=np.full(N, np.nan))
    assert result.floor == np.minimum(native, selector).mean()


def test_a_slide_reached_with_the_last_tile_is_reached() -> None:
    last = np.full(N, 32.0)
    assert judge(last, last, [last], CASES, k_max=32).floor == 1
    assert judge(last, last, [last], CASES, k_max=31).floor == 31


def test_slides_that_nothing_reaches_leave_no_room() -> None:
    native = np.where(np.arange(N) < 20, np.nan, 1.0)
    result = judge(native, native, [native], CASES)
    assert result.floor == result.native == (20 * 256 + 40) / N
    assert result.near_minimal


def test_a_cohort_that_nothing_reaches_counts_as_k_max() -> None:
    result = judge([None] * 8, [None] * 8, [[np.nan] * 8], cases=range(8), k_max=64)
    assert result.native == result.floor == 64
    assert (result.n_unreached, result.n_slides) == (8, 8)


def test_slides_that_no_ranking_reaches_are_counted() -> None:
    native = np.where(np.arange(8) < 7, np.nan, 1.0)
    result = judge(native, native, [native], cases=range(8))
    assert (result.verdict, result.n_unreached, result.n_slides) == ("saturated", 7, 8)


def test_room_below_the_first_revealed_count_is_not_claimed() -> None:
    native = np.full(N, 8.0)
    native[0] = 5  # a slide of 5 tiles ends at all of them
    result = judge(native, native, [native], CASES, first_count=8)
    assert result.floor == native.mean()
    assert result.room.estimate == 0
    assert (result.near_minimal, result.first_count) == (True, 8)
    slow = judge(np.full(N, 64.0), native, [native], CASES, first_count=8)
    assert slow.room.estimate == pytest.approx(64 - native.mean())
    with pytest.raises(FociError, match="first_count: is 0; pass 1 or more"):
        judge(native, native, [native], CASES, first_count=0)


def test_one_lucky_slide_is_not_room() -> None:
    native, selector = np.ones(N), np.ones(N)
    native[0] = np.nan  # 255 tiles on one slide: 4.25 on average, all from one patient
    result = judge(native, selector, [native], CASES)
    assert result.room.estimate == pytest.approx(255 / N)
    assert result.verdict == "saturated"


@quick
@given(
    st.lists(
        st.tuples(*[st.one_of(st.none(), st.integers(1, 300))] * 4, st.integers(0, 5)),
        min_size=1,
        max_size=12,
    )
)
def test_every_cohort_gets_a_verdict_that_follows_from_its_intervals(
    rows: list[tuple[int | None, int | None, int | None, int | None, int]],
) -> None:
    native, selector, first, second, cases = (list(column) for column in zip(*rows, strict=True))
    random = np.array([first, second], dtype=float)
    result = judge(native, selector, random, cases, n_boot=50)
    assert result.verdict in get_args(VerdictName)
    assert result.verdict == decide(
        result.room,
        result.gain_over_native,
        result.gain_over_random,
        result.random_over_native,
        result.margin,
    )
    assert result.floor <= min(result.native, result.selector, result.random) + 1e-9
    assert result.room.low >= -1e-9
