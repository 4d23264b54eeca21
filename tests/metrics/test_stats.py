"""Bootstrap over patients, the sign-flip test and Wilcoxon's signed-rank test."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from foci.metrics import (
    Interval,
    case_means,
    median_interval,
    paired_bootstrap,
    percentile_interval,
    sign_flip_pvalue,
    wilcoxon,
)
from foci.metrics import stats as module
from foci.metrics.stats import mean_intervals
from tests.metrics import references
from tests.metrics.strategies import quick


def cohort(seed: int, n_cases: int = 12) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    cases = [f"P{c}" for c in range(n_cases) for _ in range(rng.integers(1, 4))]
    base = rng.integers(1, 50, size=len(cases)).astype(float)
    foci = rng.integers(1, 20, size=len(cases)).astype(float)
    base[rng.random(len(cases)) < 0.2] = np.nan
    return base, foci, cases


def test_draws_equal_physically_repeating_the_cases() -> None:
    base, foci, cases = cohort(0)
    got = case_means(np.column_stack([base, foci]), cases, n_boot=50, seed=3)
    names = sorted(set(cases))
    weights = np.random.default_rng(3).multinomial(
        len(names), [1 / len(names)] * len(names), size=50
    )
    for draw, row in zip(weights, got, strict=True):
        slides = [
            i
            for name, times in zip(names, draw, strict=True)
            for i in [j for j, case in enumerate(cases) if case == name] * times
        ]
        np.testing.assert_allclose(row, [np.nanmean(base[slides]), np.mean(foci[slides])])


@pytest.mark.parametrize("n_cases", [1, 7, 300])
@pytest.mark.parametrize("at_once", [1, 1000, 2**20])
def test_draws_by_parts_equal_those_in_one_go(
    n_cases: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    case, weights = module.case_draws(range(n_cases), n_cases, n_boot=20, seed=at_once)
    assert case.tolist() == list(range(n_cases))
    expected = np.random.default_rng(at_once).multinomial(
        n_cases, np.full(n_cases, 1 / n_cases), size=20
    )
    np.testing.assert_array_equal(weights, expected)
    assert not weights.flags.writeable


def test_one_patient_may_be_drawn_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class First:
        """Draws the first patient only."""

        def multinomial(self, n: object, pvals: np.ndarray, size: int | None = None) -> np.ndarray:
            times = np.broadcast_to(n, size if size is not None else np.shape(n))
            return times[..., None] * (np.arange(len(pvals)) == 0)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: First())
    drawn = module._drawn(300, 5, 0)
    assert drawn[:, 0].tolist() == [300] * 5


def test_patients_in_chunks_are_drawn_as_one_multinomial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means, variances and covariances of Multinomial(C, 1/C), within and between chunks."""
    monkeypatch.setattr(module, "PATIENTS_AT_ONCE", 3)
    n, n_boot = 8, 60_000
    drawn = module._drawn(n, n_boot, 1)
    assert isinstance(drawn, module.SpilledWeights)
    assert drawn.shape == (n_boot, n)
    weights = drawn[:, np.arange(n)].astype(np.float64)
    monkeypatch.setattr(module, "_CHUNKS_IN_MEMORY", 3)
    np.testing.assert_array_equal(module._drawn(n, n_boot, 1), weights)
    np.testing.assert_array_equal(drawn[5:9, np.array([7, 0])], weights[5:9, [7, 0]])
    assert (weights.sum(axis=1) == n).all()
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.02)
    expected = np.eye(n) - 1 / n
    np.testing.assert_allclose(np.cov(weights.T), expected, atol=0.03)
    values = np.random.default_rng(0).normal(size=(n, 2))
    means = module.case_means(values, range(n), n_boot, 1)
    np.testing.assert_allclose(means, weights @ values / n, rtol=1e-12, atol=1e-12)


def test_the_last_draws_are_kept_and_others_as_memory_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_KEPT", type(module._KEPT)())
    monkeypatch.setattr(module, "_MOST_KEPT", 100)
    first = module._kept_draws(10, 5, 0)
    assert module._kept_draws(10, 5, 0) is first
    large = module._kept_draws(50, 5, 0)
    assert list(module._KEPT) == [(50, 5, 0)]
    assert module._kept_draws(50, 5, 0) is large


def test_intervals_of_columns_together_and_alone() -> None:
    base, foci, cases = cohort(4)
    base[[case == "P0" for case in cases]] = np.nan
    lonely = np.where([case == "P0" for case in cases], 1.0, np.nan)  # missing in some draws
    for columns in ([foci, foci[::-1]], [base, foci, lonely]):
        together = mean_intervals(np.column_stack(columns), cases, n_boot=100)
        for column, found in zip(columns, together, strict=True):
            draws = case_means(column[:, None], cases, 100)[:, 0]
            alone = percentile_interval(float(column.mean()), draws)
            np.testing.assert_array_equal(
                [found.estimate, found.low, found.high], [alone.estimate, alone.low, alone.high]
            )
    drawn = case_means(lonely[:, None], cases, 100)
    assert np.isnan(drawn).any()
    assert not np.isnan(drawn).all()


def test_same_seed_same_interval_other_seed_another() -> None:
    _, foci, cases = cohort(1)
    first = paired_bootstrap(foci, foci[::-1], cases, seed=5)
    assert paired_bootstrap(foci, foci[::-1], cases, seed=5) == first
    assert paired_bootstrap(foci, foci[::-1], cases, seed=6) != first


def test_pairing_removes_what_the_rankings_share() -> None:
    rng = np.random.default_rng(0)
    hard = rng.uniform(1, 200, size=40)
    result = paired_bootstrap(hard + 2, hard, cases=range(40))
    assert (result.estimate, result.low, result.high) == pytest.approx((2, 2, 2))


def test_more_slides_of_the_same_patients_are_no_more_evidence() -> None:
    rng = np.random.default_rng(0)
    base, foci = rng.uniform(1, 50, size=(2, 25))
    once = paired_bootstrap(base, foci, range(25))
    fourfold = paired_bootstrap(np.tile(base, 4), np.tile(foci, 4), list(range(25)) * 4)
    assert (fourfold.low, fourfold.high) == pytest.approx((once.low, once.high))
    careless = paired_bootstrap(np.tile(base, 4), np.tile(foci, 4), range(100))
    assert careless.high - careless.low < 0.7 * (once.high - once.low)


def test_coverage_is_near_nominal() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(300):
        differences = rng.normal(1.0, 2.0, size=40)
        result = paired_bootstrap(differences, np.zeros(40), range(40), n_boot=300, seed=seed)
        hits += result.low <= 1.0 <= result.high
    assert 0.90 <= hits / 300 <= 0.98


@quick
@given(st.integers(0, 50))
def test_order_of_the_slides_does_not_matter(seed: int) -> None:
    _, foci, cases = cohort(seed)
    shuffle = np.random.default_rng(seed).permutation(len(cases))
    once = paired_bootstrap(foci, foci**2, cases, n_boot=50)
    again = paired_bootstrap(
        foci[shuffle], foci[shuffle] ** 2, [cases[i] for i in shuffle], n_boot=50
    )
    assert (again.estimate, again.low, again.high) == pytest.approx(
        (once.estimate, once.low, once.high)
    )


def test_percentile_interval_by_hand() -> None:
    result = percentile_interval(0.5, np.linspace(0, 1, 101), level=0.9)
    assert result == Interval(0.5, pytest.approx(0.05), pytest.approx(0.95), 0.9)
    assert result.above(0.0)
    assert not result.above(0.05)
    assert result.below(1.0)
    assert not result.below(0.5)


@quick
@given(st.integers(0, 10_000), st.integers(1, 14), st.integers(2, 40))
def test_medians_equal_those_of_repeated_slides(seed: int, n_cases: int, n_slides: int) -> None:
    rng = np.random.default_rng(seed)
    cases = rng.integers(0, n_cases, size=n_slides)
    values = rng.integers(1, 12, size=n_slides) / 2
    got = median_interval(values, cases, n_boot=40, level=0.8, seed=seed)
    names = sorted(set(cases.tolist()))
    equal = [1 / len(names)] * len(names)
    drawn = []
    for weights in np.random.default_rng(seed).multinomial(len(names), equal, size=40):
        times = [int(weights[names.index(case)]) for case in cases]
        drawn.append(
            references.median(
                [v for v, n in zip(values, times, strict=True) if n for _ in range(n)]
            )
        )
    ends = np.quantile(drawn, [0.1, 0.9]) if len(names) > 1 else [np.nan, np.nan]
    np.testing.assert_allclose((got.low, got.high), ends, atol=1e-12)
    assert got.estimate == references.median(values.tolist())


def test_the_median_of_two_patients_that_agree_is_known() -> None:
    got = median_interval([1.0, 9.0, 1.0, 9.0], ["p", "p", "q", "q"])
    assert (got.estimate, got.low, got.high) == (5, 5, 5)
    alone = median_interval([1.0, 9.0], ["p", "p"])
    assert alone.estimate == 5
    assert math.isnan(alone.low)


def test_medians_by_parts_equal_those_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    _, foci, cases = cohort(2)
    whole = median_interval(foci, cases, n_boot=50)
    monkeypatch.setattr(module, "_AT_ONCE", 70)
    assert median_interval(foci, cases, n_boot=50) == whole


fractions = st.builds(Fraction, st.integers(-12, 12), st.sampled_from([1, 2, 3, 7, 10, 30]))


@quick
@given(st.lists(fractions, min_size=1, max_size=9))
def test_sign_flips_equal_trying_every_sign(values: list[Fraction]) -> None:
    assert sign_flip_pvalue([float(v) for v in values]) == references.sign_flip_pvalue(values)


@pytest.mark.parametrize("n", [1, 5, 6, 12, 16])
def test_equal_sizes_are_the_sign_test(n: int) -> None:
    for wins in range(n + 1):
        values = [0.3] * wins + [-0.3] * (n - wins)
        want = stats.binomtest(wins, n).pvalue
        assert sign_flip_pvalue(values) == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize(("n", "wins"), [(17, 13), (24, 17), (60, 36), (200, 116)])
def test_drawn_signs_are_close_to_all_of_them(n: int, wins: int) -> None:
    want = float(stats.binomtest(wins, n).pvalue)
    error = math.sqrt(want * (1 - want) / 9999)
    found = [sign_flip_pvalue([1.0] * wins + [-1.0] * (n - wins), seed=s) for s in range(3)]
    assert found == pytest.approx([want] * 3, abs=4 * error + 1e-4)
    assert len(set(found)) > 1


def test_the_observed_signs_are_one_of_the_draws() -> None:
    assert sign_flip_pvalue([1.0] * 60) == 1 / 10_000


def test_many_patients_have_the_normal_limit() -> None:
    values = np.random.default_rng(0).normal(0.04, 1.0, size=2001)
    z = values.sum() / math.sqrt((values**2).sum())
    assert sign_flip_pvalue(values) == pytest.approx(math.erfc(z / math.sqrt(2)))
    assert sign_flip_pvalue(values) == pytest.approx(sign_flip_pvalue(values[:2000]), abs=0.02)


numbers = st.lists(st.integers(-30, 30), min_size=1, max_size=40)


@quick
@given(numbers, st.sampled_from([1e-9, 0.1, 7.0, 1e9]))
def test_scale_sign_and_zeros_change_nothing(values: list[int], scale: float) -> None:
    p = sign_flip_pvalue(values)
    assert 0 < p <= 1
    assert sign_flip_pvalue(np.array(values) * scale) == p
    assert sign_flip_pvalue([-v for v in values]) == p
    assert sign_flip_pvalue([0.0, *values, 0.0, 0.0]) == p
    if sum(map(bool, values)) <= 16:
        assert sign_flip_pvalue(values[::-1]) == p


@quick
@given(st.lists(st.integers(1, 9), min_size=1, max_size=7), st.sampled_from([0.05, 0.1, 0.3]))
def test_no_more_than_alpha_of_all_signs_reject_at_alpha(sizes: list[int], alpha: float) -> None:
    found = [
        sign_flip_pvalue([s * v for s, v in zip(signs, sizes, strict=True)])
        for signs in itertools.product((1, -1), repeat=len(sizes))
    ]
    assert np.mean([p <= alpha for p in found]) <= alpha


def brute_force(differences: list[float]) -> tuple[float, float]:
    """W and its two-sided p over every assignment of signs."""
    size = [abs(d) for d in differences]
    below = [sum(other < value for other in size) for value in size]
    ranks = [b + (size.count(value) + 1) / 2 for b, value in zip(below, size, strict=True)]
    positive = sum(r for r, d in zip(ranks, differences, strict=True) if d > 0)
    total = sum(ranks)
    statistic = min(positive, total - positive)
    sums = [
        sum(r for r, sign in zip(ranks, signs, strict=True) if sign)
        for signs in itertools.product([0, 1], repeat=len(ranks))
    ]
    extreme = sum(min(s, total - s) <= statistic for s in sums)
    return statistic, min(1.0, extreme / len(sums))


@pytest.mark.parametrize("seed", range(8))
def test_wilcoxon_is_exact_for_few_distinct_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base, foci = rng.normal(size=(2, 4 + seed % 5))
    result = wilcoxon(base, foci)
    assert result.method == "exact"
    statistic, p = brute_force(list(foci - base))
    assert (result.statistic, result.pvalue) == (statistic, pytest.approx(p, abs=1e-12))


@given(st.lists(st.integers(-4, 4).filter(bool), min_size=1, max_size=10))
def test_wilcoxon_is_exact_with_ties(differences: list[int]) -> None:
    result = wilcoxon([0] * len(differences), differences)
    assert result.method == "exact"
    statistic, p = brute_force(differences)
    assert (result.statistic, result.pvalue) == (statistic, pytest.approx(p, abs=1e-12))


def test_nine_pairs_cannot_give_less_than_their_signs_allow() -> None:
    assert wilcoxon([5] * 9, [3] * 9).pvalue == 2 / 2**9


def test_many_pairs_use_the_normal_approximation() -> None:
    rng = np.random.default_rng(0)
    for base, foci in (rng.normal(size=(2, 51)), rng.integers(0, 9, size=(2, 90))):
        result = wilcoxon(base, foci)
        assert result.method == "normal"
        difference = np.subtract(foci, base)
        want = stats.wilcoxon(difference[difference != 0], method="approx")
        assert (result.statistic, result.pvalue) == (want.statistic, pytest.approx(want.pvalue))


def test_rounding_makes_no_difference_and_breaks_no_tie() -> None:
    base, more = np.array([1.0, 32.0, 200.0, 5.0, 9.0]), np.array([4.0, 4.0, 4.0, 4.0, 1.0])
    thirds = wilcoxon(base, base + more / 3)
    whole = wilcoxon(3 * base, 3 * base + more)
    assert (thirds.statistic, thirds.pvalue) == (whole.statistic, whole.pvalue)
    zero = 0.1 + 0.2  # not 0.3
    assert wilcoxon([0.3, 1.0], [zero, 2.0]).n_pairs == 1


def test_zero_differences_are_dropped() -> None:
    padded = wilcoxon([1.0, 2.0, 3.0, 4.0], [1.0, 2.5, 5.0, 3.9])
    alone = wilcoxon([2.0, 3.0, 4.0], [2.5, 5.0, 3.9])
    assert (padded.n_pairs, padded.pvalue) == (alone.n_pairs, alone.pvalue)
    assert padded.median_difference == pytest.approx(0.25)
    assert alone.median_difference == pytest.approx(0.5)
    same = wilcoxon([1, 2], [1, 2])
    assert (same.pvalue, same.n_pairs) == (1.0, 0)
