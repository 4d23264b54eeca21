"""MSK, Reach and AUKC: closed forms and properties."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from foci.metrics import aukc, msk, msk_cond, reach
from tests.metrics.strategies import Curve, curves, kappas, msks, quick


def ramp(n: int) -> np.ndarray:
    """p_1(K) = K / n for K = 1..n."""
    p = np.arange(1, n + 1) / n
    return np.column_stack([1 - p, p])


def test_msk_of_a_ramp_is_the_threshold_itself() -> None:
    assert msk(ramp(100), range(1, 101), target=1, kappa=0.9) == 90
    assert msk(ramp(100), range(1, 101), target=1, kappa=1.0) == 100
    assert msk(ramp(10)[:8], range(1, 9), target=1, kappa=0.9) is None


def test_threshold_is_included() -> None:
    assert msk([[0.1, 0.9]], [7], target=1, kappa=0.9) == 7
    assert msk([[0.1, 0.9]], [7], target=1, kappa=np.nextafter(0.9, 1)) is None


def test_on_a_tie_the_lower_class_wins() -> None:
    assert msk([[0.5, 0.5]], [1], target=0, kappa=0.5) == 1
    assert msk([[0.5, 0.5]], [1], target=1, kappa=0.5) is None


def test_confidence_alone_is_not_enough_below_one_half() -> None:
    three = [[0.45, 0.35, 0.2], [0.3, 0.4, 0.3]]
    assert msk(three, [1, 2], target=1, kappa=0.3) == 2


def test_first_crossing_counts_even_if_it_is_lost_again() -> None:
    assert msk([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], [1, 2, 3], target=1) == 1


@quick
@given(curves(), kappas, kappas)
def test_raising_kappa_never_lowers_msk(curve: Curve, one: float, other: float) -> None:
    low, high = sorted((one, other))
    early, late = (msk(*curve, kappa=kappa) or math.inf for kappa in (low, high))
    assert early <= late


@quick
@given(curves(), kappas)
def test_msk_is_a_revealed_count_that_meets_the_condition(curve: Curve, kappa: float) -> None:
    probs, ks, target = curve
    k = msk(probs, ks, target, kappa)
    assume(k is not None)
    row = probs[ks.index(k)]  # type: ignore[arg-type]
    assert row[target] >= kappa
    assert row[target] == row.max()


@quick
@given(curves(n_classes=3), kappas)
def test_renaming_classes_moves_the_target_along(curve: Curve, kappa: float) -> None:
    probs, ks, target = curve
    assume(all(np.unique(row).size == 3 for row in probs))
    renamed = [2, 0, 1]
    assert msk(probs[:, renamed], ks, renamed.index(target), kappa) == msk(probs, ks, target, kappa)


@quick
@given(msks)
def test_reach_is_a_share_and_msk_cond_lies_between_its_counts(values: list[int | None]) -> None:
    assert 0 <= reach(values) <= 1
    reached = [value for value in values if value is not None]
    if reached:
        assert min(reached) <= msk_cond(values) <= max(reached)
    else:
        assert math.isnan(msk_cond(values))


def test_msk_cond_rewards_failing() -> None:
    assert msk_cond([1, 9]) == 5
    assert msk_cond([1, None]) == 1


def test_aukc_of_a_ramp() -> None:
    # trapezoid of K/n from 1 to n is (n^2 - 1) / 2n; divided by n
    n = 50
    assert aukc(ramp(n), range(1, n + 1), n, 1) == pytest.approx((n**2 - 1) / (2 * n**2))


def test_aukc_of_a_perfect_curve_misses_one_only_by_the_first_step() -> None:
    ks = np.arange(1, 257)
    assert aukc(np.tile([0.0, 1.0], (256, 1)), ks, 1024, 1) == pytest.approx(255 / 256)


def test_aukc_of_a_single_step_is_its_probability() -> None:
    assert aukc([[0.3, 0.7]], [1], 1, 1) == 0.7


@quick
@given(curves(), st.integers(300, 5000))
def test_aukc_is_a_share_and_does_not_depend_on_n(curve: Curve, n_tiles: int) -> None:
    probs, ks, target = curve
    value = aukc(probs, ks, n_tiles, target)
    assert 0 <= value <= 1
    assert value == pytest.approx(aukc(probs, ks, ks[-1], target), abs=1e-12)


@quick
@given(curves())
def test_aukc_over_classes_sums_to_that_of_certainty(curve: Curve) -> None:
    probs, ks, _ = curve
    total = sum(aukc(probs, ks, 300, c) for c in range(probs.shape[1]))
    certain = 1.0 if len(ks) == 1 else (ks[-1] - ks[0]) / ks[-1]
    assert total == pytest.approx(certain, abs=1e-12)


def test_float32_input_is_computed_in_float64() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(200).astype(np.float32)
    probs = np.column_stack([1 - p, p])
    exact = aukc(probs.astype(np.float64), range(1, 201), 200, 1)
    assert aukc(probs, range(1, 201), 200, 1) == exact
