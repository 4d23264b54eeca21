"""Restricted mean and Kaplan-Meier, against lifelines and scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.utils import restricted_mean_survival_time
from scipy import stats

from foci.metrics import kaplan_meier, msk_cond, restricted, restricted_mean
from tests.metrics.strategies import msks, quick


def random_counts(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.ceil(rng.exponential(20, size=81))
    values[rng.random(81) < 0.2] = np.nan
    return values


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k_max", [8, 32, 256])
def test_agrees_with_lifelines_and_scipy(seed: int, k_max: int) -> None:
    values = random_counts(seed)
    times, reached = np.fmin(values, k_max), values <= k_max
    curve = kaplan_meier(values, k_max)

    fitter = KaplanMeierFitter().fit(times, reached)
    np.testing.assert_allclose(
        curve.survival, fitter.survival_function_at_times(curve.ks), rtol=0, atol=1e-12
    )
    ecdf = stats.ecdf(stats.CensoredData.right_censored(times, ~reached)).sf
    np.testing.assert_allclose(curve.survival, ecdf.evaluate(curve.ks), rtol=0, atol=1e-12)
    rmst = restricted_mean_survival_time(fitter, t=k_max)
    assert restricted_mean(values, k_max) == pytest.approx(rmst, rel=1e-9)
    median = fitter.median_survival_time_
    assert curve.median == (None if math.isinf(median) else median)


@pytest.mark.parametrize("seed", range(6))
def test_one_count_per_slide_agrees_with_lifelines(seed: int) -> None:
    values, rng = random_counts(seed), np.random.default_rng(seed + 100)
    ends = np.minimum(64, rng.integers(1, 120, size=values.size))
    times, reached = np.fmin(values, ends), values <= ends
    curve = kaplan_meier(values, ends)
    fitter = KaplanMeierFitter().fit(times, reached)
    np.testing.assert_allclose(
        curve.survival, fitter.survival_function_at_times(curve.ks), rtol=0, atol=1e-12
    )
    rmst = restricted_mean_survival_time(fitter, t=int(ends.max()))
    assert curve.area == pytest.approx(rmst, rel=1e-9)
    median = fitter.median_survival_time_
    assert curve.median == (None if math.isinf(median) else median)
    np.testing.assert_array_equal(restricted(values, ends), times)
    assert restricted_mean(values, ends) == times.mean()
    assert (~reached & (ends < 64)).any()  # some slides are censored early


@quick
@given(msks, st.integers(0, 99), st.integers(1, 320))
def test_one_count_per_slide_properties(values: list[int | None], seed: int, k_max: int) -> None:
    rng = np.random.default_rng(seed)
    ends = np.minimum(k_max, rng.integers(1, 400, size=len(values)))
    curve = kaplan_meier(values, ends)
    assert (np.diff(curve.survival) <= 0).all()
    assert curve.area >= restricted_mean(values, ends) - 1e-9
    mixed = rng.permutation(len(values))
    again = kaplan_meier([values[i] for i in mixed], ends[mixed])
    np.testing.assert_array_equal(again.survival, curve.survival)
    twice = kaplan_meier([*values, *values], np.tile(ends, 2))
    np.testing.assert_allclose(twice.survival, curve.survival, rtol=0, atol=1e-12)


@quick
@given(msks, st.integers(1, 320))
def test_equal_counts_per_slide_are_one_count_to_the_bit(
    values: list[int | None], k_max: int
) -> None:
    ends = [k_max] * len(values)
    one, each = kaplan_meier(values, k_max), kaplan_meier(values, ends)
    np.testing.assert_array_equal(each.ks, one.ks)
    np.testing.assert_array_equal(each.survival, one.survival)
    assert each.k_max == one.k_max == k_max
    np.testing.assert_array_equal(restricted(values, ends), restricted(values, k_max))
    assert restricted_mean(values, ends) == restricted_mean(values, k_max)


@quick
@given(msks, st.integers(1, 320))
def test_curve_falls_from_one_and_its_area_is_the_restricted_mean(
    values: list[int | None], k_max: int
) -> None:
    curve = kaplan_meier(values, k_max)
    assert curve.ks[0] == 0
    assert curve.survival[0] == 1
    assert (np.diff(curve.ks) > 0).all()
    assert (np.diff(curve.survival) < 0).all()
    assert 0 <= curve.survival[-1] <= 1
    assert curve.area == pytest.approx(restricted_mean(values, k_max), rel=1e-12)


@quick
@given(msks, st.integers(1, 320))
def test_restricted_mean_is_at_least_the_conditional_mean_within_the_budget(
    values: list[int | None], k_max: int
) -> None:
    within = [value if value is not None and value <= k_max else None for value in values]
    if any(value is not None for value in within):
        assert restricted_mean(values, k_max) >= msk_cond(within) - 1e-9
    assert 1 <= restricted_mean(values, k_max) <= k_max


@quick
@given(msks)
def test_failing_never_lowers_it(values: list[int | None]) -> None:
    failed = [None, *values[1:]]
    assert restricted_mean(failed, 256) >= restricted_mean(values, 256)


def test_unreached_and_beyond_the_budget_count_as_k_max() -> None:
    np.testing.assert_array_equal(restricted([3, None, 40, 32], 32), [3, 32, 32, 32])


def test_the_paper_ablation_is_put_right() -> None:
    # Table loss components: 1.52 tiles at 34.4 % Reach against 3.21 at 90.1 %
    without_loss = [1.52] * 344 + [None] * 656
    full = [3.21] * 901 + [None] * 99
    assert msk_cond(without_loss) < msk_cond(full)
    assert restricted_mean(without_loss, 256) > restricted_mean(full, 256)


def test_median_by_hand() -> None:
    assert kaplan_meier([2, 4, None, None], 256).median == 4
    assert kaplan_meier([2, None, None], 256).median is None
