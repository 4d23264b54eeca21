"""AUC against scikit-learn and scipy, and selected-only predictions from stored curves."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from foci.metrics import (
    adaptive_budget,
    auc,
    selected_only_auc,
    selected_probabilities,
)
from tests.metrics.strategies import Curve, curves, quick


def test_adaptive_budget_is_the_exact_floor() -> None:
    for n in range(1, 20_000, 7):
        assert adaptive_budget(n) == max(16, Fraction(3, 100) * n // 1)
    assert adaptive_budget(1024) == 30
    assert adaptive_budget(1024, alpha=0.05, k_min=60) == 60


def test_a_bag_smaller_than_the_budget_keeps_all_tiles() -> None:
    probs = np.column_stack([np.linspace(1, 0, 10), np.linspace(0, 1, 10)])
    got = selected_probabilities([probs], [range(1, 11)], [10], [[0.5, 0.5]], k=32)
    np.testing.assert_array_equal(got, [[0, 1]])


def test_each_slide_is_read_at_its_own_adaptive_count() -> None:
    ks = np.arange(1, 41)
    probs = np.column_stack([1 - ks / 100, ks / 100])
    full = [[0.5, 0.5]] * 3
    got = selected_probabilities(
        [probs, probs, probs[:9]], [ks, ks, ks[:9]], [1024, 90, 9], full, k=None
    )
    np.testing.assert_allclose(got[:, 1], [0.30, 0.16, 0.09])


@quick
@given(st.lists(curves(n_classes=2), min_size=1, max_size=5), st.integers(1, 300))
def test_is_the_row_of_the_curve_where_the_count_was_revealed(cohort: list[Curve], k: int) -> None:
    probs, ks = [c[0] for c in cohort], [c[1] for c in cohort]
    n_tiles = [301] * len(cohort)
    at = selected_probabilities(probs, ks, n_tiles, [[0.25, 0.75]] * len(cohort), k)
    for i, (rows, counts, _) in enumerate(cohort):
        if k in counts:
            np.testing.assert_array_equal(at[i], rows[list(counts).index(k)])
        else:
            assert np.isnan(at[i]).all()


def test_a_kept_bag_that_was_not_revealed_whole_is_the_full_bag() -> None:
    probs, ks = [[[0.6, 0.4]], [[0.3, 0.7]]], [[1], [1]]
    full = [[0.2, 0.8], [0.9, 0.1]]
    got = selected_probabilities(probs, ks, n_tiles=[20, 500], full=full, k=32)
    np.testing.assert_array_equal(got, [[0.2, 0.8], [np.nan, np.nan]])
    assert math.isnan(selected_only_auc(probs, ks, [20, 500], full, labels=[1, 0], k=32))
    assert selected_only_auc(probs, ks, [20, 20], full, labels=[1, 0], k=32) == 1


def test_it_is_the_auc_of_the_kept_tiles_for_any_order() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 2
    full, selected, first, second = rng.dirichlet([1, 1], size=(4, 30))
    for order in (selected, first, second):
        got = selected_only_auc(order[:, None], [[32]] * 30, [999] * 30, full, labels)
        assert got == auc(order, labels)
        assert got != auc(full, labels)
    everything = selected_only_auc(selected[:, None], [[1]] * 30, [32] * 30, full, labels)
    assert everything == auc(full, labels)


def cohort(seed: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 6, size=(40, n_classes)).astype(float)  # many ties
    return weights / weights.sum(axis=1, keepdims=True), rng.permutation(np.arange(40) % n_classes)


@pytest.mark.parametrize("seed", range(5))
def test_binary_agrees_with_scikit_learn_and_mann_whitney(seed: int) -> None:
    probs, labels = cohort(seed, 2)
    want = roc_auc_score(labels, probs[:, 1])
    positive, negative = probs[labels == 1, 1], probs[labels == 0, 1]
    pairs = positive.size * negative.size
    assert auc(probs, labels) == pytest.approx(want, abs=1e-12)
    assert auc(probs[:, 1], labels) == pytest.approx(want, abs=1e-12)
    assert want == pytest.approx(mannwhitneyu(positive, negative).statistic / pairs, abs=1e-12)


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_macro_one_vs_rest_agrees_with_scikit_learn(n_classes: int, seed: int) -> None:
    probs, labels = cohort(seed, n_classes)
    want = roc_auc_score(labels, probs, multi_class="ovr", average="macro")
    assert auc(probs, labels) == pytest.approx(want, abs=1e-12)


@quick
@given(st.lists(st.integers(0, 9), min_size=2, max_size=30))
def test_reversing_the_scores_mirrors_the_area(scores: list[int]) -> None:
    labels = np.arange(len(scores)) % 2
    mirrored = auc([-score for score in scores], labels)
    assert auc(scores, labels) == pytest.approx(1 - mirrored, abs=1e-12)


def test_all_ties_are_worth_one_half() -> None:
    assert auc([0.3, 0.3, 0.3], [0, 1, 1]) == 0.5
