"""AUC against scikit-learn and scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from foci.metrics import auc
from tests.metrics.strategies import quick


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
