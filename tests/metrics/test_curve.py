"""MSK, Reach, AUKC, stability, specificity: of one curve, and of a cohort at once."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from foci.metrics import (
    Specificity,
    aukc,
    fallback_share,
    msk,
    msk_cond,
    operating_points,
    predicted_class,
    reach,
    runner_up,
    specificity,
    stable_msk,
    stack,
    truncate,
)
from foci.metrics.curve import MAX_MEAN_DEVIATION, area_error, area_over_counts, followed
from tests.metrics.strategies import Curve, curves, kappas, msks, quick


def test_outputs_are_read_for_one_target_and_for_one_per_slide() -> None:
    probs = np.array([[[0.5, 0.5, 0.0], [0.1, 0.9, 0.0]], [[0.2, 0.2, 0.6], [0.3, 0.1, 0.6]]])
    each = followed(probs, np.array([1, 2]))
    assert each.confidence.tolist() == [[0.5, 0.9], [0.6, 0.6]]
    assert each.kept.tolist() == [[False, True], [True, True]], "a tie goes to the lower index"
    assert each.sure(0.6).tolist() == [[False, True], [True, True]]
    assert each.sure(np.array([[0.9], [0.7]])).tolist() == [[False, True], [False, False]]
    one = followed(probs[0], 0)
    assert one.confidence.tolist() == [0.5, 0.1]
    assert one.kept.tolist() == [True, False]
    whole = followed(probs[:, 0], np.array([0, 2]))
    assert (whole.confidence.tolist(), whole.kept.tolist()) == ([0.5, 0.6], [True, True])


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


UP, DOWN = [0.0, 1.0], [1.0, 0.0]


def test_stable_msk_by_hand() -> None:
    ks = [1, 2, 4, 8]
    assert stable_msk([UP, UP, UP, UP], ks, 1) == 1
    assert stable_msk([UP, DOWN, UP, UP], ks, 1) == 4
    assert stable_msk([UP, UP, UP, DOWN], ks, 1) is None
    assert stable_msk([DOWN, DOWN, DOWN, UP], ks, 1) == 8


def test_losing_the_largest_class_is_a_fallback_too() -> None:
    assert stable_msk([[0.4, 0.6], [0.5, 0.5]], [1, 2], target=1, kappa=0.5) is None


@quick
@given(curves(), kappas)
def test_stable_msk_is_never_before_the_first_crossing(curve: Curve, kappa: float) -> None:
    first, stable = msk(*curve, kappa=kappa), stable_msk(*curve, kappa=kappa)
    assert (first or math.inf) <= (stable or math.inf)
    if first is not None:
        later = curve[0][curve[1].index(first) :]
        stays = all(msk([row], [1], curve[2], kappa) for row in later)
        assert fallback_share([first], [stable]) == float(not stays)


@quick
@given(curves(), kappas, kappas)
def test_raising_kappa_never_lowers_stable_msk(curve: Curve, one: float, other: float) -> None:
    low, high = sorted((one, other))
    early, late = (stable_msk(*curve, kappa=kappa) or math.inf for kappa in (low, high))
    assert early <= late


def test_fallback_share_counts_only_slides_that_cross() -> None:
    assert fallback_share([1, 2, 3, None], [1, 5, None, None]) == 2 / 3
    assert math.isnan(fallback_share([None], [None]))


def test_predicted_class_takes_the_lower_index_on_a_tie() -> None:
    assert predicted_class([0.4, 0.4, 0.2]) == 0


def test_runner_up_leaves_the_target_out_even_if_it_is_weakest() -> None:
    assert runner_up([0.1, 0.6, 0.3], target=0) == 1
    assert runner_up([0.4, 0.2, 0.4], target=2) == 0
    assert runner_up([0.0, 1.0], target=1) == 0
    assert runner_up([1.0, 0.0, 0.0], target=0) == 1


@quick
@given(curves(), kappas, st.integers(1, 300))
def test_a_smaller_budget_keeps_an_msk_within_it_and_loses_any_other(
    curve: Curve, kappa: float, k_max: int
) -> None:
    probs, ks, target = curve
    assume(ks[0] <= k_max)
    whole = msk(probs, ks, target, kappa) or math.inf
    within = msk(*truncate(probs, ks, k_max), target, kappa) or math.inf
    assert within == (whole if whole <= k_max else math.inf)


@pytest.mark.parametrize(
    ("target", "rival", "specific"),
    [(1, None, True), (1, 2, True), (2, 1, False), (None, 1, False), (None, None, False)],
)
def test_specific_means_target_first(target: int | None, rival: int | None, specific: bool) -> None:
    assert Specificity(target, rival, 0).specific is specific


def test_the_rival_is_the_strongest_of_the_full_bag_not_of_the_curve() -> None:
    curve = [[0.95, 0.0, 0.05], [0.0, 0.05, 0.95]]
    result = specificity(curve, [1, 2], target=2, full=[0.1, 0.2, 0.7])
    assert result == Specificity(target_msk=2, rival_msk=None, rival=1)


def test_the_error_of_an_area_on_a_grid_bounds_the_difference_to_every_count() -> None:
    rng = np.random.default_rng(0)
    ks, every = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]), np.arange(1, 65)
    curves = 1 / (
        1 + np.exp(-(every - rng.uniform(1, 60, (200, 1))) / rng.uniform(0.5, 9, (200, 1)))
    )
    gap = np.abs(area_over_counts(curves, every) - area_over_counts(curves[:, ks - 1], ks))
    assert (gap <= area_error(curves[:, ks - 1], ks) + 1e-12).all()
    assert gap.max() > 1e-3
    hidden = np.where(np.isin(every, ks), 0.0, MAX_MEAN_DEVIATION * rng.choice([-1, 1], (200, 64)))
    strayed = np.clip(0.5 * curves + 0.25, 0, 1)
    gap = np.abs(
        area_over_counts(strayed + hidden, every) - area_over_counts(strayed[:, ks - 1], ks)
    )
    assert (gap <= area_error(strayed[:, ks - 1], ks) + 1e-12).all()
    flat = np.full(12, 0.5)
    assert area_error(flat, ks) == pytest.approx(MAX_MEAN_DEVIATION * (64 - 12) / 64)
    assert not area_error(curves, every).any()
    assert not area_error(np.ones((3, 1)), np.array([7])).any()


def number(value: float | None) -> float:
    return math.nan if value is None else float(value)


@quick
@given(st.lists(curves(n_classes=3), min_size=1, max_size=6), kappas, st.integers(0, 99))
def test_every_number_equals_that_of_the_single_curve(
    cohort: list[Curve], kappa: float, seed: int
) -> None:
    cohort = [*cohort, cohort[0]]  # two slides that share their counts
    probs, ks = [c[0] for c in cohort], [c[1] for c in cohort]
    targets = np.array([c[2] for c in cohort])
    full = np.random.default_rng(seed).dirichlet(np.ones(3), len(cohort))
    got = operating_points(stack(probs, ks), full, targets, kappa)
    for i, (rows, counts, target) in enumerate(cohort):
        want = (
            number(msk(rows, counts, target, kappa)),
            number(stable_msk(rows, counts, target, kappa)),
            aukc(rows, counts, 300, target),
            float(specificity(rows, counts, target, full[i], kappa).specific),
        )
        found = (got.msk[i], got.stable[i], got.aukc[i], got.specific[i])
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)


def test_long_stacks_are_cut_into_blocks() -> None:
    n = 2500
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], (n, 2))
    parts = stack(list(probs), [[1, 2]] * n)
    assert [len(part.rows) for part in parts] == [1024, 1024, 452]
    got = operating_points(parts, probs[:, 1], np.zeros(n, dtype=np.int64), 0.6).msk
    assert got[2400:].tolist() == pytest.approx(
        [number(msk(p, [1, 2], 0, 0.6)) for p in probs[2400:]], nan_ok=True
    )
