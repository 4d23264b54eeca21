"""Risks, numbers and labels against what was observed: loops over draws, hand-worked values."""

import numpy as np
import pytest

from foci.errors import FociError
from foci.metrics.outcomes import (
    c_index,
    c_index_interval,
    constant_labels,
    macro_auc,
    macro_auc_interval,
    survival_curve,
)
from foci.metrics.stats import Interval, case_draws
from tests.metrics import references

CASES = [f"P{i // 3}" for i in range(24)]
"""Three slides of each patient."""


def by_loop(estimate, *columns) -> list[float]:
    """Ends of the interval from every draw of patients, its slides repeated."""
    case, weights = case_draws(CASES, len(CASES), 200, 0)
    rows = (np.repeat(np.arange(len(CASES)), own[case]) for own in weights)
    draws = [estimate(*(column[own].tolist() for column in columns)) for own in rows]
    return np.quantile(draws, [0.025, 0.975]).tolist()


def ends(found: Interval) -> list[float]:
    return [found.low, found.high]


def labelled() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    marks = rng.integers(0, 2, size=(24, 3)).astype(float)
    return (marks + rng.normal(size=(24, 3))).round(1), marks


def test_concordance_of_every_draw_is_that_of_its_pairs() -> None:
    """With ties of risks and of times, and patients that are drawn several times."""
    rng = np.random.default_rng(3)
    risk, event = rng.normal(size=24).round(1), rng.integers(0, 2, 24)
    time = rng.integers(1, 9, 24).astype(float)
    found = c_index_interval(risk, time, event, CASES, n_boot=200)
    assert found.estimate == references.c_index(risk, time, event)
    same = pytest.approx(by_loop(references.c_index, risk, time, event), abs=1e-12)
    assert ends(found) == same
    assert np.isnan(c_index([1.0, 2.0], [3, 3], [1, 1]))


def test_macro_auc_of_every_draw_is_that_of_its_slides() -> None:
    scores, marks = labelled()
    found = macro_auc_interval(scores, marks, CASES, n_boot=200)
    assert found.estimate == macro_auc(scores, marks)
    assert found.estimate == pytest.approx(references.macro_auc(scores, marks))
    assert ends(found) == pytest.approx(by_loop(references.macro_auc, scores, marks), abs=1e-12)


def test_labels_of_a_patient_are_drawn_together() -> None:
    """A label that stands twice is no second piece of evidence, nor is a slide."""
    scores, marks = labelled()
    once = macro_auc_interval(scores[:, :1], marks[:, :1], CASES, n_boot=200)
    twice = macro_auc_interval(
        np.repeat(scores[:, :1], 2, axis=1), np.repeat(marks[:, :1], 2, axis=1), CASES, n_boot=200
    )
    assert twice == once
    again = macro_auc_interval(
        np.repeat(scores, 2, axis=0), np.repeat(marks, 2, axis=0), np.repeat(CASES, 2), n_boot=200
    )
    assert ends(again) == pytest.approx(
        ends(macro_auc_interval(scores, marks, CASES, n_boot=200)), abs=1e-12
    )


def test_a_label_that_all_slides_have_says_nothing() -> None:
    scores, marks = labelled()
    marks[:, 1] = 1
    assert constant_labels(marks).tolist() == [False, True, False]
    kept = scores[:, [0, 2]], marks[:, [0, 2]]
    assert macro_auc(scores, marks) == macro_auc(*kept)
    same = macro_auc_interval(*kept, CASES, n_boot=200)
    assert macro_auc_interval(scores, marks, CASES, n_boot=200) == same
    assert np.isnan(macro_auc(scores[:, 1:2], marks[:, 1:2]))
    with pytest.raises(FociError, match="labels: holds more than 0 and 1"):
        macro_auc(scores, 2 * marks)


def test_kaplan_meier_by_hand() -> None:
    """Five patients: a death at 2 of 5 at risk, deaths at 4 of 3, a censored one in between."""
    times, alive = survival_curve(np.array([2.0, 3.0, 4.0, 4.0, 6.0]), np.array([1, 0, 1, 1, 0]))
    assert times.tolist() == [2, 4]
    assert alive.tolist() == pytest.approx([0.8, 0.8 / 3])


def test_kaplan_meier_against_lifelines() -> None:
    lifelines = pytest.importorskip("lifelines")
    rng = np.random.default_rng(2)
    time, event = rng.integers(1, 20, 60).astype(float), rng.integers(0, 2, 60)
    fitted = lifelines.KaplanMeierFitter().fit(time, event)
    times, alive = survival_curve(time, event)
    assert alive == pytest.approx(fitted.survival_function_at_times(times).to_numpy())
