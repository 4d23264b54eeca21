"""Two rankings against each other: slide by slide, and the tiles that one saves."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from foci.metrics import (
    OrderComparison,
    captured_headroom,
    case_means,
    compare_areas,
    compare_orders,
    msk_cond,
    net_win_share,
    order_differences,
    paired_msk,
    shi,
    shi_against_random,
)
from tests.metrics import references
from tests.metrics.strategies import msks, quick

Cohort = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


@st.composite
def cohorts(draw: st.DrawFn) -> Cohort:
    """Counts ``[S]`` and ``[R, S]`` with ties and missing ones, and patients."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_slides, n_orders = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    values = rng.integers(1, draw(st.integers(2, 9)), size=(n_orders + 1, n_slides)).astype(float)
    values[rng.random(values.shape) < 0.2] = np.nan
    return values[0], values[1:], rng.integers(0, draw(st.integers(1, 30)), size=n_slides)


@quick
@given(cohorts())
def test_differences_equal_the_definition(cohort: Cohort) -> None:
    a, b, _ = cohort
    got = order_differences(a, b)
    for slide in range(len(a)):
        want = references.net_win_share([a[slide]], b[:, [slide]].tolist(), 0.0)
        assert got[slide] == pytest.approx(want, abs=1e-12)


@quick
@given(cohorts(), st.integers(0, 9))
def test_interval_equals_repeating_the_slides_of_drawn_patients(cohort: Cohort, seed: int) -> None:
    a, b, cases = cohort
    got = compare_orders(a, b, cases, n_boot=60, level=0.8, seed=seed)
    names = sorted(set(cases.tolist()))
    equal = [1 / len(names)] * len(names)
    drawn = []
    for weights in np.random.default_rng(seed).multinomial(len(names), equal, size=60):
        times = [weights[names.index(case)] for case in cases]
        rows = [row for row, n in enumerate(times) for _ in range(n)]
        drawn.append(references.net_win_share(a[rows].tolist(), b[:, rows].tolist(), 0.0))
    assert got.d == pytest.approx(references.net_win_share(a.tolist(), b.tolist(), 0.0), abs=1e-12)
    ends = np.quantile(drawn, [0.1, 0.9]) if len(names) > 1 else [np.nan, np.nan]
    np.testing.assert_allclose((got.low, got.high), ends, atol=1e-12)
    assert (got.n_slides, got.n_cases) == (len(a), len(names))


@quick
@given(cohorts())
def test_turning_the_comparison_round_turns_its_sign(cohort: Cohort) -> None:
    a, b, cases = cohort
    there, back = compare_orders(a, b, cases, n_boot=50), compare_orders(b, a, cases, n_boot=50)
    turned = {"better": "worse", "worse": "better"}
    assert (there.d, there.low, there.high) == pytest.approx(
        (-back.d, -back.high, -back.low), nan_ok=True
    )
    assert there.result == turned.get(back.result, back.result)
    assert there.n_differ == back.n_differ


@quick
@given(cohorts(), st.integers(0, 99))
def test_order_of_slides_and_whole_copies_change_nothing(cohort: Cohort, seed: int) -> None:
    a, b, cases = cohort
    before = compare_orders(a, b, cases, n_boot=50)
    mixed = np.random.default_rng(seed).permutation(len(a))
    twice = np.repeat(np.arange(len(a)), 2)  # every slide twice within its patient
    for rows, factor in ((mixed, 1), (twice, 2)):
        after = compare_orders(a[rows], b[:, rows], cases[rows], n_boot=50)
        assert (after.d, after.low, after.high) == pytest.approx(
            (before.d, before.low, before.high), abs=1e-12, nan_ok=True
        )
        assert after.n_slides == factor * before.n_slides
        assert (after.n_cases, after.n_differ) == (before.n_cases, before.n_differ)
        assert after.result == before.result


@quick
@given(cohorts())
def test_a_ranking_against_itself_is_same_from_twenty_patients_on(cohort: Cohort) -> None:
    _, b, cases = cohort
    got = compare_orders(b, b, cases, n_boot=50)
    end = 0 if got.n_cases > 1 else np.nan  # one patient has no interval
    assert (got.d, got.low, got.high) == pytest.approx((0, end, end), abs=1e-12, nan_ok=True)
    assert got.result == ("same" if got.n_cases >= 20 else "unclear")
    assert got.n_differ == 0


@quick
@given(cohorts(), st.integers(0, 39))
def test_failing_never_helps(cohort: Cohort, at: int) -> None:
    a, b, _ = cohort
    failed = a.copy()
    failed[at % len(a)] = np.nan
    assert net_win_share(failed, b) <= net_win_share(a, b) + 1e-12


def won(wins: int, losses: int, ties: int = 0) -> OrderComparison:
    """One slide per patient."""
    a = [1] * wins + [3] * losses + [2] * ties
    return compare_orders(a, [2] * len(a), cases=range(len(a)))


def test_seven_of_twelve_is_unclear_and_twelve_of_twelve_is_not() -> None:
    assert won(7, 5).result == "unclear"
    assert won(12, 0).result == "better"
    assert won(0, 12).result == "worse"


def test_six_patients_have_to_differ() -> None:
    assert won(5, 0).result == "unclear"
    assert won(6, 0).result == "better"
    assert (won(5, 0, 10).low > 0, won(5, 0, 10).n_differ) == (True, 5)
    assert won(5, 0, 10).result == "unclear"
    assert won(6, 0, 10).result == "better"


def test_same_needs_twenty_patients_and_comes_first() -> None:
    assert won(0, 0, 19).result == "unclear"
    assert won(0, 0, 20).result == "same"
    small = won(20, 0, 480)  # shown to be better, by less than a tenth
    assert small.low > 0
    assert small.result == "same"
    assert won(60, 0, 440).result == "better"


def test_the_margin_itself_is_inside() -> None:
    # one win, or one loss, in every patient of ten slides: all draws are +-0.1
    a, cases = np.tile([1.0] + [2.0] * 9, 25), np.repeat(np.arange(25), 10)
    assert compare_orders(a, np.full(250, 2.0), cases).result == "same"
    assert compare_orders(np.full(250, 2.0), a, cases).result == "same"
    assert compare_orders(np.tile([1.0] + [2.0] * 8, 25), [2.0] * 225, cases[:225]).result != "same"


def test_slides_of_a_patient_that_cancel_are_no_difference() -> None:
    got = compare_orders([1, 3] * 7, [2] * 14, cases=np.repeat(np.arange(7), 2))
    assert (got.d, got.n_differ) == (0, 0)


def test_ten_orders_that_cancel_leave_no_rounding_behind() -> None:
    b = np.array([[3.0] * 8] * 5 + [[1.0] * 8] * 5 + [[2.0] * 8])
    got = compare_orders([2.0] * 8, b, cases=range(8))
    assert (got.result, got.n_differ) == ("unclear", 0)


def test_draws_are_those_of_the_other_intervals() -> None:
    a, b = np.array([1.0, 5.0, 2.0, 9.0]), np.array([2.0, 2.0, 3.0, 9.0])
    draws = case_means(order_differences(a, b)[:, None], list("aabc"), 100, seed=3)[:, 0]
    got = compare_orders(a, b, list("aabc"), n_boot=100, level=0.9, seed=3)
    assert (got.low, got.high) == tuple(np.quantile(draws, [(1 - 0.9) / 2, (1 + 0.9) / 2]))


def test_larger_areas_are_ahead_and_a_hundredth_is_a_tie() -> None:
    a = np.full(30, 0.50)
    assert compare_areas(a, a - 0.02, range(30)).result == "better"
    assert compare_areas(a, a + 0.02, range(30)).result == "worse"
    assert compare_areas(a, a + 0.01, range(30)).d == 0
    assert compare_areas(a, a + 0.0101, range(30)).d == -1
    assert (
        compare_areas([0.07, 0.10], [0.06, 0.09], ["p", "q"]).d == 0
    )  # 0.07 > 0.06 + 0.01 in binary
    assert compare_areas([0.06, 0.09], [0.07, 0.10], ["p", "q"]).d == 0
    assert compare_areas(a, np.stack([a - 0.1, a + 0.1]), range(30)).result == "same"


def test_slides_without_an_area_are_left_out() -> None:
    a, b = [0.5, math.nan, 0.2, 0.1], [[0.1, 0.1, math.nan, 0.3]] * 2
    got = compare_areas(a, b, ["p", "q", "r", "s"])
    assert (got.d, got.n_slides, got.n_cases, got.n_differ) == (0, 2, 2, 2)
    nothing = compare_areas([math.nan], [0.5], ["p"])
    assert (nothing.result, nothing.n_slides, nothing.n_cases) == ("unclear", 0, 0)
    assert math.isnan(nothing.d)


tiles = st.floats(1, 256)


def test_seeds_are_averaged_before_the_ratio() -> None:
    base, foci = [2.0, 20.0], [1.0, 19.0]
    assert shi(base, foci) == pytest.approx(1 - 10 / 11)


def test_eps_guards_an_empty_base() -> None:
    assert shi(0.0, 0.0) == 0.0
    assert shi(1.0, 0.5, eps=1.0) == 0.25


@quick
@given(tiles, tiles)
def test_sign_says_who_needs_fewer_tiles(base: float, foci: float) -> None:
    value = shi(base, foci)
    assert (value > 0) == (foci < base)
    assert (value < 0) == (foci > base)
    assert value < 1


def test_beating_the_proxy_can_still_lose_to_chance() -> None:
    proxy, selector, chance = 38.0, 17.0, [5.1, 4.9, 5.0]
    assert shi(proxy, selector) == pytest.approx(0.5526, abs=1e-4)
    assert shi_against_random(chance, selector) == pytest.approx(-2.4)


def test_random_orders_of_several_seeds_are_averaged_together() -> None:
    assert shi_against_random([[4.0, 6.0], [5.0, 5.0]], [2.0, 3.0]) == pytest.approx(0.5)


@quick
@given(tiles, tiles)
def test_captured_headroom_is_one_at_the_bound_and_zero_at_the_start(a: float, b: float) -> None:
    greedy, base = sorted((a, b))
    if base > greedy:
        assert captured_headroom(base, greedy, greedy) == 1
        assert captured_headroom(base, base, greedy) == 0
    else:
        assert math.isnan(captured_headroom(base, base, greedy))


def test_slides_of_one_ranking_only_are_counted_not_averaged() -> None:
    pair = paired_msk(base=[10, 200, None], foci=[4, None, 1])
    assert (pair.base, pair.foci) == (10, 4)
    assert (pair.n_both, pair.n_base_only, pair.n_foci_only, pair.n_neither) == (1, 1, 1, 0)


def test_no_common_slide_gives_no_means() -> None:
    pair = paired_msk([1, None], [None, 1])
    assert math.isnan(pair.base)
    assert math.isnan(pair.foci)


@quick
@given(msks)
def test_a_ranking_paired_with_itself_is_its_conditional_mean(values: list[int | None]) -> None:
    pair = paired_msk(values, values)
    mean = msk_cond(values)
    if math.isnan(mean):
        assert math.isnan(pair.base)
        assert math.isnan(pair.foci)
    else:
        assert pair.base == pair.foci == mean
    assert pair.n_both + pair.n_neither == len(values)


@quick
@given(msks)
def test_swapping_the_rankings_swaps_the_result(values: list[int | None]) -> None:
    other = values[::-1]
    there, back = paired_msk(values, other), paired_msk(other, values)
    assert (there.n_both, there.n_base_only) == (back.n_both, back.n_foci_only)
    assert there.base == back.foci or math.isnan(there.base)
