"""Deletion drops and their area."""

import numpy as np
import pytest
from hypothesis import given

from foci.metrics import deletion_drop, faithfulness_auc
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
