"""Comprehensiveness and sufficiency."""

import numpy as np
import pytest
from hypothesis import given

from foci.metrics import comprehensiveness, deletion_drop, sufficiency
from tests.metrics.strategies import Curve, curves, quick


def test_a_rationale_that_carries_everything() -> None:
    full, uniform = [0.1, 0.9], [0.5, 0.5]
    assert comprehensiveness(full, [uniform], [32], 1, budgets=[32]) == pytest.approx(0.4)
    assert sufficiency(full, [full], [32], 1, budgets=[32]) == 0


def test_only_the_budgets_count() -> None:
    revealed = [[0.5, 0.5], [0.3, 0.7], [0.1, 0.9]]
    assert sufficiency([0.1, 0.9], revealed, [1, 8, 32], 1, [1, 32]) == pytest.approx(0.2)


@quick
@given(curves())
def test_all_budgets_give_the_mean_drop(curve: Curve) -> None:
    probs, ks, target = curve
    full = probs[-1]
    want = np.mean(deletion_drop(full, probs, ks, target))
    assert comprehensiveness(full, probs, ks, target, ks) == pytest.approx(want, abs=1e-12)
    assert sufficiency(full, probs, ks, target, ks) == pytest.approx(want, abs=1e-12)
