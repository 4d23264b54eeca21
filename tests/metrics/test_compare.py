"""Two rankings against each other: slide by slide, and the tiles that one saves."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from foci.metrics import (
    NetShare,
    area_differences,
    captured_headroom,
    compare_areas,
    compare_orders,
    msk_cond,
    net_win_share,
    order_differences,
    paired_msk,
    shi,
    shi_against_random,
    sign_flip_pvalue,
)
from foci.metrics.compare import patient_intervals, patient_means
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
        want = references.net_win_share([a[slide]], b[:, [slide]].tolist())
        assert got[slide] == pytest.approx(want, abs=1e-12)


def by_patient(cohort: Cohort) -> list[Fraction]:
    """Mean difference of every patient, without rounding."""
    a, b, cases = cohort
    wins: dict[int, list[Fraction]] = {}
    for own, others, case in zip(a, b.T, cases.tolist(), strict=True):
        signs = [int(references.net_win_share([own], [[other]])) for other in others]
        wins.setdefault(case, []).append(Fraction(sum(signs), len(signs)))
    return [sum(wins[case], Fraction()) / len(wins[case]) for case in sorted(wins)]


@quick
@given(cohorts(), st.integers(0, 9))
def test_interval_equals_repeating_drawn_patients(cohort: Cohort, seed: int) -> None:
    a, b, cases = cohort
    got = compare_orders(a, b, cases, n_boot=60, level=0.8, seed=seed)
    means = [float(one) for one in by_patient(cohort)]
    n = len(means) + 2
    drawn = []
    for weights in np.random.default_rng(seed).multinomial(n, [1 / n] * n, size=60):
        for pseudo in ((1.0, -1.0), (-1.0, 1.0)):
            patients = [*means, *pseudo]
            repeated = [patients[i] for i in range(n) for _ in range(weights[i])]
            drawn.append(references.mean(repeated))
    ends = np.quantile(drawn, [0.1, 0.9]) if len(means) > 1 else [np.nan, np.nan]
    np.testing.assert_allclose((got.low, got.high), ends, atol=1e-12)


def test_intervals_of_many_cohorts_are_those_of_each() -> None:
    d = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], size=(15, 4))
    together = patient_intervals(d, n_boot=80, level=0.9, seed=2)
    for column, ends in zip(d.T, together.T, strict=True):
        alone = compare_orders(2 - column, [2] * 15, range(15), n_boot=80, level=0.9, seed=2)
        assert (alone.low, alone.high) == pytest.approx(tuple(ends), abs=1e-12)


@quick
@given(cohorts(), st.sampled_from([0.8, 0.95]))
def test_the_other_numbers_equal_those_by_hand(cohort: Cohort, level: float) -> None:
    a, b, cases = cohort
    got = compare_orders(a, b, cases, n_boot=40, level=level)
    means = by_patient(cohort)
    assert got.d == pytest.approx(float(sum(means) / len(means)), abs=1e-12)
    assert got.d == net_win_share(a, b, cases)
    assert (got.n_slides, got.n_cases) == (len(a), len(means))
    slides = [
        one for row in range(len(a)) for one in by_patient((a[[row]], b[:, [row]], cases[:1]))
    ]
    assert (got.wins, got.losses) == (sum(x > 0 for x in slides), sum(x < 0 for x in slides))
    assert (got.case_wins, got.case_losses) == (
        sum(x > 0 for x in means),
        sum(x < 0 for x in means),
    )
    differing = [one for one in means if one]
    if len(differing) <= 10:
        want = references.sign_flip_pvalue(differing)
        assert got.pvalue == float(want)
    else:
        assert got.pvalue == sign_flip_pvalue([float(one) for one in means])
    if len(means) >= 20 and got.low >= -0.1 and got.high <= 0.1:
        assert got.result == "same"
    elif got.pvalue <= 1 - level + 1e-12:
        assert got.result == ("better" if sum(means) > 0 else "worse")
    else:
        assert got.result == "unclear"


@quick
@given(cohorts())
def test_swapping_the_orders_negates_the_comparison(cohort: Cohort) -> None:
    a, b, cases = cohort
    there, back = compare_orders(a, b, cases, n_boot=50), compare_orders(b, a, cases, n_boot=50)
    turned = {"better": "worse", "worse": "better"}
    assert there.d == -back.d
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=1e-12, nan_ok=True)
    assert there.pvalue == back.pvalue
    assert (there.wins, there.losses) == (back.losses, back.wins)
    assert (there.case_wins, there.case_losses) == (back.case_losses, back.case_wins)
    assert there.result == turned.get(back.result, back.result)


def unchanged(before: NetShare, after: NetShare, *, slides: bool = True) -> None:
    """The same comparison, up to rounding; ``slides`` asks for the same numbers of slides, too."""
    numbers = ("d", "low", "high", "pvalue")
    counts = ("n_cases", "case_wins", "case_losses", "result")
    for name in (*counts, *(("n_slides", "wins", "losses") if slides else ())):
        assert getattr(after, name) == getattr(before, name)
    for name in numbers:
        want = pytest.approx(getattr(before, name), abs=1e-12, nan_ok=True)
        assert getattr(after, name) == want


@quick
@given(cohorts(), st.integers(0, 99))
def test_permuting_slides_changes_nothing(cohort: Cohort, seed: int) -> None:
    a, b, cases = cohort
    mixed = np.random.default_rng(seed).permutation(len(a))
    before = compare_orders(a, b, cases, n_boot=50)
    unchanged(before, compare_orders(a[mixed], b[:, mixed], cases[mixed], n_boot=50))


@quick
@given(cohorts(), st.integers(0, 39), st.integers(2, 4))
def test_copies_of_all_slides_of_a_patient_change_nothing(
    cohort: Cohort, chosen: int, times: int
) -> None:
    a, b, cases = cohort
    copied = cases == cases[chosen % len(cases)]
    rows = np.repeat(np.arange(len(a)), np.where(copied, times, 1))
    before = compare_orders(a, b, cases, n_boot=50)
    after = compare_orders(a[rows], b[:, rows], cases[rows], n_boot=50)
    unchanged(before, after, slides=False)
    assert after.n_slides == before.n_slides + (times - 1) * copied.sum()


@quick
@given(cohorts(), st.sampled_from([np.sqrt, np.square, lambda k: 7 * k + 3]))
def test_a_monotone_transform_changes_nothing(cohort: Cohort, transform: Any) -> None:
    a, b, cases = cohort
    before = compare_orders(a, b, cases, n_boot=50)
    unchanged(before, compare_orders(transform(a), transform(b), cases, n_boot=50))
    areas = a / 16, b / 16  # NaN is left out here, not infinite
    larger = compare_areas(*areas, cases, n_boot=50, tie=0)
    unchanged(larger, compare_areas(*map(transform, areas), cases, n_boot=50, tie=0))


@quick
@given(cohorts())
def test_a_larger_area_is_a_smaller_count(cohort: Cohort) -> None:
    a, b, cases = cohort
    a, b = np.nan_to_num(a, nan=300.0), np.nan_to_num(b, nan=300.0)
    counts = compare_orders(a, b, cases, n_boot=50, tie=1.0)
    unchanged(counts, compare_areas(-a, -b, cases, n_boot=50, tie=1.0))
    np.testing.assert_array_equal(area_differences(-a, -b, tie=1.0), order_differences(a, b, 1.0))


@quick
@given(cohorts())
def test_the_interval_holds_the_estimate(cohort: Cohort) -> None:
    got = compare_orders(*cohort)
    assert got.n_cases == 1 or got.low - 1e-12 <= got.d <= got.high + 1e-12


@quick
@given(cohorts())
def test_a_ranking_against_itself_is_the_same_from_28_patients_on(cohort: Cohort) -> None:
    _, b, cases = cohort
    got = compare_orders(b, b, cases)
    assert (got.d, got.pvalue) == (0, 1)
    assert (got.wins, got.losses, got.case_wins, got.case_losses) == (0, 0, 0, 0)
    assert got.result == ("same" if got.n_cases >= 28 else "unclear")


@quick
@given(cohorts(), st.integers(0, 39))
def test_failing_never_helps(cohort: Cohort, at: int) -> None:
    a, b, cases = cohort
    failed = a.copy()
    failed[at % len(a)] = np.nan
    assert net_win_share(failed, b, cases) <= net_win_share(a, b, cases) + 1e-12


def won(wins: int, losses: int, ties: int = 0, **how: Any) -> NetShare:
    """One slide per patient."""
    a = [1] * wins + [3] * losses + [2] * ties
    return compare_orders(a, [2] * len(a), cases=range(len(a)), **how)


def test_seven_of_twelve_is_unclear_and_twelve_of_twelve_is_not() -> None:
    assert won(7, 5).result == "unclear"
    assert won(12, 0).result == "better"
    assert won(0, 12).result == "worse"


def test_six_patients_have_to_differ() -> None:
    assert (won(5, 0).pvalue, won(5, 0).result) == (2 / 2**5, "unclear")
    assert (won(6, 0).pvalue, won(6, 0).result) == (2 / 2**6, "better")
    assert won(5, 0, 10).result == "unclear"
    assert won(6, 0, 10).result == "better"
    assert won(5, 0, level=0.9).result == "better"


@pytest.mark.parametrize("n", [2, 6, 12, 24, 60, 200])
def test_where_all_patients_agree_the_pseudo_patients_are_the_interval(n: int) -> None:
    """The lower end is that of a binomial number of draws of the one at -1."""
    got = won(n, 0, n_boot=20_000)
    often = stats.binom.ppf(0.975, n + 2, 1 / (n + 2))
    assert (got.d, got.high) == (1, 1)
    assert got.low == pytest.approx(1 - 2 * often / (n + 2))


@pytest.mark.parametrize("n", [12, 24, 60])
@pytest.mark.parametrize("d", [0.0, 0.5, 0.87])
def test_intervals_cover_a_large_difference_in_few_patients(n: int, d: float) -> None:
    """Every number of wins, by its probability; percentiles of the patients alone missed .87."""
    wins = np.arange(n + 1)
    chance = stats.binom.pmf(wins, n, (1 + d) / 2)
    found = [won(k, n - k) for k in wins.tolist()]
    inside = [one.low <= d <= one.high for one in found]
    assert 0.90 <= chance[inside].sum() < 1
    ends = [2 * stats.binom.ppf([0.025, 0.975], n, k / n) / n - 1 for k in wins]
    alone = [low <= d <= high for low, high in ends]
    assert (chance[alone].sum() < 0.81) == (d == 0.87 and n < 60)


def test_every_patient_weighs_the_same() -> None:
    # eleven patients lose their only slide, the twelfth wins a hundred
    a, cases = [3] * 11 + [1] * 100, [*range(11), *[11] * 100]
    got = compare_orders(a, [2] * 111, cases)
    assert got.d == pytest.approx((1 - 11) / 12)
    assert (got.wins, got.losses, got.case_wins, got.case_losses) == (100, 11, 1, 11)
    assert got.result == "worse"


def test_same_comes_first() -> None:
    assert won(0, 0, 27).result == "unclear"
    assert won(0, 0, 28).result == "same"
    small = won(20, 0, 480)  # shown to be better, by less than a tenth
    assert (small.pvalue < 0.001, small.low > 0, small.result) == (True, True, "same")
    assert won(60, 0, 440).result == "better"


def test_without_two_patients_or_two_draws_there_is_no_interval() -> None:
    for got in (compare_orders([1, 1], [2, 2], ["p", "p"]), won(30, 0, n_boot=1)):
        assert math.isnan(got.low)
        assert math.isnan(got.high)
    assert won(0, 0, 30, n_boot=1).result == "unclear"


def test_slides_of_a_patient_that_cancel_are_no_difference() -> None:
    got = compare_orders([1, 3] * 7, [2] * 14, cases=np.repeat(np.arange(7), 2))
    assert (got.d, got.pvalue, got.case_wins, got.case_losses) == (0, 1, 0, 0)
    assert (got.wins, got.losses) == (7, 7)


def test_ten_orders_that_cancel_leave_no_rounding_behind() -> None:
    b = np.array([[3.0] * 8] * 5 + [[1.0] * 8] * 5 + [[2.0] * 8])
    got = compare_orders([2.0] * 8, b, cases=range(8))
    assert (got.result, got.pvalue) == ("unclear", 1)
    assert (got.wins, got.losses, got.case_wins, got.case_losses) == (0, 0, 0, 0)


def test_means_of_a_patient_in_the_order_of_the_names() -> None:
    means = patient_means(np.array([1.0, 3.0, 8.0, -2.0]), cases=["P2", "P2", "P10", "P2"])
    np.testing.assert_allclose(means, [8, 2 / 3])


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
    np.testing.assert_array_equal(area_differences(a, b), [1, math.nan, math.nan, -1])
    got = compare_areas(a, b, ["p", "q", "r", "s"])
    assert (got.d, got.n_slides, got.n_cases) == (0, 2, 2)
    assert (got.case_wins, got.case_losses) == (1, 1)
    nothing = compare_areas([math.nan], [0.5], ["p"])
    assert (nothing.result, nothing.n_slides, nothing.n_cases) == ("unclear", 0, 0)
    assert (math.isnan(nothing.d), nothing.pvalue) == (True, 1)


def test_one_missing_area_of_several_orders_leaves_the_slide_out() -> None:
    np.testing.assert_array_equal(
        area_differences([0.5, 0.5], [[0.1, 0.1], [math.nan, 0.9]]), [math.nan, 0]
    )


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
