"""Many slides at once give the numbers of one slide at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.errors import FociError
from foci.metrics import (
    aukc,
    deletion_drop,
    faithfulness_auc,
    msk,
    probability_at,
    specificity,
    stable_msk,
)
from foci.metrics.cohort.stacked import (
    drops_on_grid,
    on_grid,
    operating_points,
    probabilities_at,
    slide_faithfulness,
    stack,
)
from tests.metrics.strategies import Curve, curves, kappas, quick


def number(value: float | None) -> float:
    return math.nan if value is None else float(value)


@quick
@given(st.lists(curves(n_classes=3), min_size=1, max_size=6), kappas, st.integers(0, 99))
def test_every_number_equals_that_of_the_single_curve(
    cohort: list[Curve], kappa: float, seed: int
) -> None:
    cohort = [*cohort, cohort[0]]  # two slides that share their counts
    probs, ks = [c[0] for c in cohort], [c[1] for c in cohort]
    targets = np.array([c[2] for c in cohort])
    full = np.random.default_rng(seed).dirichlet(np.ones(3), len(cohort))
    got = operating_points(stack(probs, ks), full, targets, kappa)
    for i, (rows, counts, target) in enumerate(cohort):
        want = (
            number(msk(rows, counts, target, kappa)),
            number(stable_msk(rows, counts, target, kappa)),
            aukc(rows, counts, 300, target),
            float(specificity(rows, counts, target, full[i], kappa).specific),
        )
        found = (got.msk[i], got.stable[i], got.aukc[i], got.specific[i])
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)


@quick
@given(st.lists(curves(n_classes=2), min_size=1, max_size=5), st.integers(1, 300))
def test_probabilities_and_drops_at_a_count(cohort: list[Curve], k: int) -> None:
    probs, ks = [c[0] for c in cohort], [c[1] for c in cohort]
    targets = np.array([c[2] for c in cohort])
    full = np.tile([0.25, 0.75], (len(cohort), 1))
    stacks = stack(probs, ks)
    at = probabilities_at(stacks, 2, np.full(len(cohort), k))
    drops = drops_on_grid(stacks, full, targets, np.array([k]))[:, 0]
    for i, (rows, counts, target) in enumerate(cohort):
        if k in counts:
            np.testing.assert_array_equal(at[i], probability_at(rows, counts, 300, k))
            each = deletion_drop(full[i], rows, counts, target)
            assert drops[i] == each[counts.index(k)]
        else:
            assert np.isnan(at[i]).all()
            assert np.isnan(drops[i])


def test_a_curve_keeps_its_last_value_on_the_grid() -> None:
    probs = [[[0.9, 0.1], [0.7, 0.3]], [[0.5, 0.5], [0.4, 0.6], [0.2, 0.8]]]
    got = on_grid(stack(probs, [[1, 2], [1, 2, 4]]), np.array([0, 1]), np.array([1, 2, 3, 4]))
    np.testing.assert_array_equal(got, [[0.9, 0.7, 0.7, 0.7], [0.5, 0.6, 0.6, 0.8]])


def test_a_curve_that_starts_late_begins_with_its_first_value() -> None:
    got = on_grid(stack([[[0.4, 0.6]]], [[3]]), np.array([1]), np.array([1, 5]))
    np.testing.assert_array_equal(got, [[0.6, 0.6]])


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


def test_a_curve_without_counts_is_nan() -> None:
    stacks = stack([np.empty((0, 2)), [[0.5, 0.5]]], [[], [1]])
    assert [part.rows.tolist() for part in stacks] == [[1]]
    full, targets = np.array([[0.2, 0.8], [0.2, 0.8]]), np.array([1, 1])
    drops = drops_on_grid(stacks, full, targets, np.array([1]))
    np.testing.assert_allclose(drops, [[math.nan], [0.3]])


def test_long_stacks_are_cut_into_blocks() -> None:
    n = 2500
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], (n, 2))
    parts = stack(list(probs), [[1, 2]] * n)
    assert [len(part.rows) for part in parts] == [1024, 1024, 452]
    got = operating_points(parts, probs[:, 1], np.zeros(n, dtype=np.int64), 0.6).msk
    assert got[2400:].tolist() == pytest.approx(
        [number(msk(p, [1, 2], 0, 0.6)) for p in probs[2400:]], nan_ok=True
    )


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(FociError, match="misses a sum of 1"):
        stack([[[0.5, 0.4]]], [[1]])
    with pytest.raises(FociError, match="2 counts for 1 curve points"):
        stack([[[0.5, 0.5]]], [[1, 2]])
    with pytest.raises(FociError, match="not strictly increasing"):
        stack([[[0.5, 0.5]] * 2], [[2, 1]])
