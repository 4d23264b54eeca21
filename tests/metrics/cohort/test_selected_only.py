"""Selected-only predictions read from stored curves."""

from fractions import Fraction

import numpy as np
import pytest

from foci.metrics import (
    adaptive_budget,
    auc,
    probability_at,
    selected_only_auc,
    selected_probabilities,
)


def test_adaptive_budget_is_the_exact_floor() -> None:
    for n in range(1, 20_000, 7):
        assert adaptive_budget(n) == max(16, Fraction(3, 100) * n // 1)
    assert adaptive_budget(1024) == 30
    assert adaptive_budget(1024, alpha=0.05, k_min=60) == 60


def test_a_bag_smaller_than_the_budget_keeps_all_tiles() -> None:
    probs = np.column_stack([np.linspace(1, 0, 10), np.linspace(0, 1, 10)])
    np.testing.assert_array_equal(probability_at(probs, range(1, 11), n_tiles=10, k=32), [0, 1])


def test_each_slide_is_read_at_its_own_adaptive_count() -> None:
    ks = np.arange(1, 41)
    probs = np.column_stack([1 - ks / 100, ks / 100])
    got = selected_probabilities([probs, probs, probs[:9]], [ks, ks, ks[:9]], [1024, 90, 9], k=None)
    np.testing.assert_allclose(got[:, 1], [0.30, 0.16, 0.09])


def test_differences_to_full_bag_and_random() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 2
    full, selected, first, second = rng.dirichlet([1, 1], size=(4, 30))
    result = selected_only_auc(full, selected, [first, second], labels)
    assert result.full == auc(full, labels)
    assert result.kept == auc(selected, labels) - auc(full, labels)
    chance = (auc(first, labels) + auc(second, labels)) / 2
    assert result.over_random == pytest.approx(auc(selected, labels) - chance)
