"""AUC of each class, with patients drawn again: against pairs counted one by one."""

import numpy as np
import pytest

from foci.metrics import auc
from foci.metrics.cohort import class_auc_draws, class_aucs
from foci.metrics.stats import case_draws


def by_pairs(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> float:
    won = total = 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            pair = weights[i] * weights[j]
            won += pair * (float(scores[i] > scores[j]) + 0.5 * float(scores[i] == scores[j]))
            total += pair
    return won / total if total else float("nan")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_draws_count_pairs_by_how_often_their_patients_are_drawn(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    probs = rng.dirichlet(np.ones(n_classes), 14).round(1)
    probs[:, 0] += 1 - probs.sum(axis=1)  # rounded: many ties
    labels = rng.integers(n_classes, size=14)
    cases = [f"P{i // 2}" for i in range(14)]
    draws = class_auc_draws(probs, labels, cases, n_boot=130, seed=5)
    case, weights = case_draws(cases, 14, 130, 5)
    assert draws.shape == (130, n_classes)
    for row in (0, 1, 99, 100, 129):
        want = [by_pairs(probs[:, c], labels == c, weights[row][case]) for c in range(n_classes)]
        np.testing.assert_allclose(draws[row], want)
    whole = [by_pairs(probs[:, c], labels == c, np.ones(14)) for c in range(n_classes)]
    np.testing.assert_allclose(class_aucs(probs, labels), whole)
    assert np.mean(whole) == pytest.approx(auc(probs, labels))


def test_a_class_that_is_absent_has_no_auc() -> None:
    assert np.isnan(class_aucs([[0.5, 0.5], [0.4, 0.6]], labels=[1, 1])).all()
