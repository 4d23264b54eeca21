"""Another class, a smaller budget: from the same stored curve."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from foci.metrics import aukc, msk, predicted_class, runner_up, truncate
from tests.metrics.strategies import Curve, curves, kappas, quick


def test_predicted_class_takes_the_lower_index_on_a_tie() -> None:
    assert predicted_class([0.4, 0.4, 0.2]) == 0


def test_runner_up_leaves_the_target_out_even_if_it_is_weakest() -> None:
    assert runner_up([0.1, 0.6, 0.3], target=0) == 1
    assert runner_up([0.4, 0.2, 0.4], target=2) == 0
    assert runner_up([0.0, 1.0], target=1) == 0
    assert runner_up([1.0, 0.0, 0.0], target=0) == 1


@quick
@given(curves(n_classes=2))
def test_binary_predicted_class_view_is_one_minus_the_label_view(curve: Curve) -> None:
    probs, ks, label = curve
    certain = 1.0 if len(ks) == 1 else (ks[-1] - ks[0]) / ks[-1]
    other = aukc(probs, ks, 300, 1 - label)
    assert other == pytest.approx(certain - aukc(probs, ks, 300, label), abs=1e-12)


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
