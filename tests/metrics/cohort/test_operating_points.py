"""MSK, stable MSK and AUKC of cohorts whose curves have different lengths."""

import math

import numpy as np
import pytest

from foci.metrics import (
    OperatingPoints,
    aukc,
    msk,
    msk_cond,
    operating_points,
    reach,
    restricted_mean,
    stack,
)

LONG = [[0.2, 0.8], [0.05, 0.95], [0.3, 0.7]]
SHORT = [[0.9, 0.1]]
KS = [[1, 2, 3], [1], [1]]
FULL = [[0.5, 0.5]] * 3


def points(kappa: float = 0.9, targets: tuple[int, ...] = (1, 1, 0)) -> OperatingPoints:
    return operating_points(stack([LONG, SHORT, SHORT], KS), FULL, targets, kappa)


def test_msk_of_curves_of_different_lengths() -> None:
    np.testing.assert_array_equal(points().msk, [2, np.nan, 1])


def test_stable_msk_of_a_cohort() -> None:
    np.testing.assert_array_equal(points().stable, [np.nan, np.nan, 1])


def test_aukc_of_every_slide() -> None:
    want = [aukc(LONG, KS[0], 10, 1), 0.1, 0.9]
    assert points().aukc.tolist() == pytest.approx(want)


def test_several_thresholds_by_hand() -> None:
    counts = [points(kappa, (1, 1, 1)).msk[:2] for kappa in (0.7, 0.9, 0.99)]
    assert [reach(each) for each in counts] == [0.5, 0.5, 0.0]
    assert [restricted_mean(each, 8) for each in counts] == [(1 + 8) / 2, (2 + 8) / 2, 8]
    assert [msk_cond(each) for each in counts[:2]] == [1, 2]
    assert math.isnan(msk_cond(counts[2]))


def test_a_higher_threshold_reaches_no_more_slides() -> None:
    rng = np.random.default_rng(0)
    p = np.clip(rng.random((20, 30)).cumsum(axis=1) / 20, 0, 1)
    probs = np.stack([1 - p, p], axis=2)
    stacks = stack(list(probs), [range(1, 31)] * 20)
    reaches = []
    for kappa in (0.7, 0.8, 0.9, 0.95):
        counts = operating_points(stacks, probs[:, -1], [1] * 20, kappa).msk
        each = [msk(curve, range(1, 31), 1, kappa) for curve in probs]
        expected = (msk_cond(each), reach(each), restricted_mean(each, 256))
        assert (msk_cond(counts), reach(counts), restricted_mean(counts, 256)) == expected
        reaches.append(reach(counts))
    assert reaches == sorted(reaches, reverse=True)
    assert reaches[0] > reaches[-1]
