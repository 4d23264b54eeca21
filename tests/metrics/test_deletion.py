"""Deletion drops and their area: of one slide, and of a cohort at once."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.metrics import (
    deletion_drop,
    drops_on_grid,
    faithfulness_auc,
    mean_drops,
    paper_faithfulness,
    slide_faithfulness,
    stack,
)
from tests.metrics.strategies import Curve, curves, quick

PAPER_KS = [16, 32, 64, 128, 256]


def test_deleting_nothing_drops_nothing() -> None:
    full = [0.2, 0.8]
    assert deletion_drop(full, [full, [0.5, 0.5]], ks=[0, 16], target=1).tolist() == [0, 0.8 - 0.5]


def test_a_drop_may_be_negative() -> None:
    assert deletion_drop([0.5, 0.5], [[0.25, 0.75]], [16], 1).tolist() == [-0.25]


@quick
@given(curves())
def test_drops_over_the_classes_cancel(curve: Curve) -> None:
    probs, ks, _ = curve
    full = probs[0]
    total = sum(deletion_drop(full, probs, ks, c) for c in range(probs.shape[1]))
    np.testing.assert_allclose(total, 0, atol=1e-12)


def test_a_constant_drop_covers_the_range_of_the_counts() -> None:
    assert faithfulness_auc(PAPER_KS, [0.5] * 5) == pytest.approx(0.5 * (256 - 16) / 256)
    assert faithfulness_auc([0, 64], [0.25, 0.25], k_max=64) == pytest.approx(0.25)


@quick
@given(st.lists(curves(n_classes=2), min_size=1, max_size=5), st.integers(1, 300))
def test_drops_at_a_count(cohort: list[Curve], k: int) -> None:
    full = [0.25, 0.75]
    stacks = stack([c[0] for c in cohort], [c[1] for c in cohort])
    drops = drops_on_grid(stacks, [full] * len(cohort), [c[2] for c in cohort], [k])[:, 0]
    for got, (rows, counts, target) in zip(drops, cohort, strict=True):
        if k in counts:
            assert got == deletion_drop(full, rows, counts, target)[counts.index(k)]
        else:
            assert np.isnan(got)


def test_a_curve_without_counts_is_nan() -> None:
    stacks = stack([np.empty((0, 2)), [[0.5, 0.5]]], [[], [1]])
    assert [part.rows.tolist() for part in stacks] == [[1]]
    drops = drops_on_grid(stacks, [[0.2, 0.8], [0.2, 0.8]], [1, 1], [1])
    np.testing.assert_allclose(drops, [[math.nan], [0.3]])


def test_area_of_the_mean_drop_is_the_mean_area() -> None:
    rng = np.random.default_rng(0)
    drops = rng.uniform(-1, 1, size=(7, 5))
    means, n = mean_drops(drops)
    np.testing.assert_allclose(means, drops.mean(axis=0), atol=1e-15)
    np.testing.assert_array_equal(n, 7)
    each = [faithfulness_auc(PAPER_KS, row) for row in drops]
    assert faithfulness_auc(PAPER_KS, means) == pytest.approx(np.mean(each))
    np.testing.assert_allclose(slide_faithfulness(drops, np.full(7, 300)), each, atol=1e-15)


def test_short_bags_leave_the_long_counts_to_others() -> None:
    probs = [[[0.3, 0.7], [0.5, 0.5]], [[0.7, 0.3], [0.9, 0.1]]]
    stacks = stack(probs, [[16, 32], [32, 64]], lowest=0)
    drops = drops_on_grid(stacks, [[0.1, 0.9]] * 2, [1, 1], grid=[16, 32, 64, 128])
    means, n = mean_drops(drops)
    np.testing.assert_allclose(means, [0.2, 0.5, 0.8, np.nan])
    assert n.tolist() == [1, 2, 1, 0]


@pytest.mark.parametrize("n_tiles", [1, 16, 17, 32, 33, 64, 65, 200, 256, 257, 1024])
def test_faithfulness_stops_at_the_last_count_below_n(n_tiles: int) -> None:
    counts, values = (16, 32, 64, 128, 256), (0.1, 0.2, 0.15, 0.4, 0.5)
    below = [k for k in counts if k < n_tiles]
    drops = [[v if k < n_tiles else math.nan for k, v in zip(counts, values, strict=True)]]
    got = slide_faithfulness(np.array(drops), np.array([n_tiles]))[0]
    if len(below) < 2:
        assert math.isnan(got)
    else:
        assert got == pytest.approx(faithfulness_auc(below, values[: len(below)], k_max=below[-1]))


def test_a_count_that_was_not_measured_leaves_no_faithfulness() -> None:
    drops = np.array([[0.1, math.nan, 0.2, 0.3, 0.4]])
    assert math.isnan(slide_faithfulness(drops, np.array([1000]))[0])


def test_the_two_forms_differ_where_bags_are_small_only() -> None:
    values = [0.1, 0.2, 0.3, 0.4, 0.5]
    large = np.array([values, [2 * v for v in values]])
    each = slide_faithfulness(large, np.array([300, 257]))
    assert paper_faithfulness(large) == pytest.approx(each.mean())
    small = np.array([values, [1.0, 1.0, math.nan, math.nan, math.nan]])
    each = slide_faithfulness(small, np.array([300, 40]))
    np.testing.assert_allclose(each, [faithfulness_auc(PAPER_KS, values), 0.5])
    assert paper_faithfulness(small) == pytest.approx(
        faithfulness_auc(PAPER_KS, [0.55, 0.6, 0.3, 0.4, 0.5])
    )


def test_paper_form_without_a_slide_at_some_count_is_nan() -> None:
    assert math.isnan(paper_faithfulness([[0.1, 0.2, 0.3, 0.4, math.nan]]))
