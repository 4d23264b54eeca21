"""Loss and accuracy of full-bag predictions by hand."""

from pathlib import Path

import numpy as np
import pytest

from foci import backbones
from foci.backbones.training import Predictions, predict
from tests.makers.cohorts import D_IN, toy_cohort


def test_loss_and_accuracy_by_hand() -> None:
    seen = Predictions(
        ("a", "b"), np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([1, 1], dtype=np.int64)
    )
    assert seen.loss == pytest.approx(-(np.log(0.75) + np.log(0.5)) / 2)
    assert seen.accuracy == 0.5


def test_a_certain_mistake_is_finite() -> None:
    seen = Predictions(("a",), np.array([[1.0, 0.0]]), np.array([1], dtype=np.int64))
    assert np.isfinite(seen.loss)


def test_predicts_in_eval_mode_and_gives_the_mode_back(tmp_path: Path) -> None:
    cohort = toy_cohort(tmp_path)
    model = backbones.create("abmil", d_in=D_IN, n_classes=2, d=8, hidden=4, dropout=0.9).train()
    first, second = predict(model, cohort), predict(model, cohort)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert model.training
    assert first.slide_ids == tuple(slide.slide_id for slide in cohort)
    assert first.labels.tolist() == [i % 2 for i in range(len(cohort))]
