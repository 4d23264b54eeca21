"""Cohorts of curves with different lengths."""

import math

import numpy as np
import pytest

from foci.metrics import (
    aukc,
    cohort_aukc,
    cohort_msk,
    kappa_sweep,
    msk_cond,
    reach,
    restricted_mean,
    stable_msk,
)

LONG = [[0.2, 0.8], [0.05, 0.95], [0.3, 0.7]]
SHORT = [[0.9, 0.1]]


def test_msk_of_curves_of_different_lengths() -> None:
    got = cohort_msk([LONG, SHORT, SHORT], [[1, 2, 3], [1], [1]], [1, 1, 0])
    np.testing.assert_array_equal(got, [2, np.nan, 1])


def test_stable_msk_of_a_cohort() -> None:
    got = cohort_msk([LONG, SHORT], [[1, 2, 3], [1]], [1, 0], per_slide=stable_msk)
    np.testing.assert_array_equal(got, [np.nan, 1])


def test_cohort_aukc_is_the_mean_over_slides() -> None:
    got = cohort_aukc([LONG, SHORT], [[1, 2, 3], [1]], [10, 1], [1, 0])
    assert got == pytest.approx((aukc(LONG, [1, 2, 3], 10, 1) + 0.9) / 2)


def test_kappa_sweep_by_hand() -> None:
    rows = kappa_sweep([LONG, SHORT], [[1, 2, 3], [1]], [1, 1], kappas=(0.7, 0.9, 0.99), k_max=8)
    assert [row.kappa for row in rows] == [0.7, 0.9, 0.99]
    assert [row.reach for row in rows] == [0.5, 0.5, 0.0]
    assert [row.restricted_mean for row in rows] == [(1 + 8) / 2, (2 + 8) / 2, 8]
    assert [row.msk_cond for row in rows[:2]] == [1, 2]
    assert math.isnan(rows[2].msk_cond)


def test_sweep_rows_equal_the_metrics_at_that_threshold() -> None:
    rng = np.random.default_rng(0)
    p = rng.random((20, 30)).cumsum(axis=1) / 20
    probs = [np.column_stack([1 - row, row]) for row in np.clip(p, 0, 1)]
    ks = [range(1, 31)] * 20
    reaches = []
    for row in kappa_sweep(probs, ks, [1] * 20):
        msks = cohort_msk(probs, ks, [1] * 20, row.kappa)
        expected = (msk_cond(msks), reach(msks), restricted_mean(msks, 256))
        assert (row.msk_cond, row.reach, row.restricted_mean) == expected
        reaches.append(row.reach)
    assert reaches == sorted(reaches, reverse=True)
