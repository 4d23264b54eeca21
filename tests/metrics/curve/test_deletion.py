"""Deletion drops, their area, tiles to flip, comprehensiveness and sufficiency."""

import numpy as np
import pytest
from hypothesis import given

from foci.metrics import (
    comprehensiveness,
    deletion_drop,
    faithfulness_auc,
    sufficiency,
    tiles_to_flip,
)
from tests.metrics.strategies import Curve, curves, quick

PAPER_KS = [16, 32, 64, 128, 256]


def test_deleting_nothing_drops_nothing() -> None:
    full = [0.2, 0.8]
    assert deletion_drop(full, [full, [0.5, 0.5]], ks=[0, 16], target=1).tolist() == [0, 0.8 - 0.5]


def test_a_drop_may_be_negative() -> None:
    assert deletion_drop([0.5, 0.5], [[0.25, 0.75]], [16], 1).tolist() == [-0.25]


@quick
@given(curves())
def test_drops_over_the_classes_cancel(curve: Curve) -> None:
    probs, ks, _ = curve
    full = probs[0]
    total = sum(deletion_drop(full, probs, ks, c) for c in range(probs.shape[1]))
    np.testing.assert_allclose(total, 0, atol=1e-12)


def test_the_paper_row() -> None:
    drops = [0.016, 0.023, 0.036, 0.058, 0.090]
    assert faithfulness_auc(PAPER_KS, drops) == pytest.approx(0.0537, abs=5e-5)


def test_a_constant_drop_covers_the_range_of_the_counts() -> None:
    assert faithfulness_auc(PAPER_KS, [0.5] * 5) == pytest.approx(0.5 * (256 - 16) / 256)
    assert faithfulness_auc([0, 64], [0.25, 0.25], k_max=64) == pytest.approx(0.25)


def test_tiles_to_flip_by_hand() -> None:
    curve = [[0.1, 0.9], [0.5, 0.5], [0.1, 0.9]]
    assert tiles_to_flip(curve, [1, 4, 9], target=1) == 4
    assert tiles_to_flip(curve, [1, 4, 9], target=0) == 1
    assert tiles_to_flip(curve[:1], [1], target=1) is None


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
