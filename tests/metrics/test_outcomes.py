"""Survival curves against hand-worked values and another library."""

import numpy as np
import pytest

from foci.metrics.outcomes import survival_curve


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
