"""Stable MSK and slides that fall back."""

import math

from hypothesis import given

from foci.metrics import fallback_share, msk, stable_msk
from tests.metrics.strategies import Curve, curves, kappas, quick

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
