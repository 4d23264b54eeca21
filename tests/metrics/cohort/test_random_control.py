"""Chance as the zero of the scale."""

import numpy as np
import pytest

from foci.metrics import aukc, random_corrected_aukc


def test_an_order_like_chance_scores_zero() -> None:
    curve = np.array([[0.4, 0.6], [0.1, 0.9]])
    assert random_corrected_aukc(curve, [1, 2], 2, 1, [curve, curve]) == 0


def test_correction_is_the_mean_over_orders() -> None:
    flat = np.tile([0.5, 0.5], (4, 1))
    high, low = np.tile([0.25, 0.75], (4, 1)), np.tile([1.0, 0.0], (4, 1))
    ks = [1, 2, 3, 4]
    got = random_corrected_aukc(flat, ks, 9, 1, [high, low])
    chance = (aukc(high, ks, 9, 1) + aukc(low, ks, 9, 1)) / 2
    assert got == pytest.approx(aukc(flat, ks, 9, 1) - chance)
