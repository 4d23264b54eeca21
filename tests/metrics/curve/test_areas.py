"""Areas of other tools."""

import numpy as np
import pytest
from hypothesis import given

from foci.metrics import aupc, morf_minus_lerf
from foci.metrics.curve.areas import STRAY, area_error, area_over_counts
from tests.metrics.strategies import Curve, curves, quick


@quick
@given(curves())
def test_aupc_ignores_the_spacing(curve: Curve) -> None:
    probs, ks, target = curve
    assert aupc(probs, ks, target) == aupc(probs, range(len(ks)), target)
    assert aupc(probs, ks, target) == pytest.approx(np.mean(probs[:, target]))


@quick
@given(curves())
def test_swapping_the_orders_or_the_direction_flips_the_sign(curve: Curve) -> None:
    morf, ks, target = curve
    lerf = morf[::-1]
    value = morf_minus_lerf(morf, lerf, ks, target)
    assert morf_minus_lerf(lerf, morf, ks, target) == pytest.approx(-value, abs=1e-12)
    assert morf_minus_lerf(morf, lerf, ks, target, "delete") == pytest.approx(-value, abs=1e-12)
    assert -1 <= value <= 1


def test_a_constant_gap_is_the_area_on_any_grid() -> None:
    high, low = [[0.25, 0.75]] * 3, [[0.75, 0.25]] * 3
    assert morf_minus_lerf(high, low, [1, 2, 200], 1) == pytest.approx(0.5)
    assert morf_minus_lerf(high[:1], low[:1], [7], 1) == pytest.approx(0.5)


def test_uneven_grids_are_weighted_by_their_width() -> None:
    morf, lerf = [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]], [[0.5, 0.5]] * 3
    assert morf_minus_lerf(morf, lerf, [1, 2, 11], 1) == pytest.approx((0.25 + 9 * 0.5) / 10)


def test_the_error_of_an_area_on_a_grid_bounds_the_difference_to_every_count() -> None:
    rng = np.random.default_rng(0)
    ks, every = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]), np.arange(1, 65)
    curves = 1 / (
        1 + np.exp(-(every - rng.uniform(1, 60, (200, 1))) / rng.uniform(0.5, 9, (200, 1)))
    )
    gap = np.abs(area_over_counts(curves, every) - area_over_counts(curves[:, ks - 1], ks))
    assert (gap <= area_error(curves[:, ks - 1], ks) + 1e-12).all()
    assert gap.max() > 1e-3
    hidden = np.where(np.isin(every, ks), 0.0, STRAY * rng.choice([-1, 1], (200, 64)))
    strayed = np.clip(0.5 * curves + 0.25, 0, 1)
    gap = np.abs(
        area_over_counts(strayed + hidden, every) - area_over_counts(strayed[:, ks - 1], ks)
    )
    assert (gap <= area_error(strayed[:, ks - 1], ks) + 1e-12).all()
    flat = np.full(12, 0.5)
    assert area_error(flat, ks) == pytest.approx(STRAY * (64 - 12) / 64)
    assert not area_error(curves, every).any()
    assert not area_error(np.ones((3, 1)), np.array([7])).any()
