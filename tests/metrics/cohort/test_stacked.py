"""Many slides at once give the numbers of one slide at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.errors import FociError
from foci.metrics import aukc, msk, operating_points, specificity, stable_msk, stack
from foci.metrics.curve import on_grid
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


def test_a_curve_keeps_its_last_value_on_the_grid() -> None:
    probs = [[[0.9, 0.1], [0.7, 0.3]], [[0.5, 0.5], [0.4, 0.6], [0.2, 0.8]]]
    got = on_grid(stack(probs, [[1, 2], [1, 2, 4]]), np.array([0, 1]), np.array([1, 2, 3, 4]))
    np.testing.assert_array_equal(got, [[0.9, 0.7, 0.7, 0.7], [0.5, 0.6, 0.6, 0.8]])


def test_a_curve_that_starts_late_begins_with_its_first_value() -> None:
    got = on_grid(stack([[[0.4, 0.6]]], [[3]]), np.array([1]), np.array([1, 5]))
    np.testing.assert_array_equal(got, [[0.6, 0.6]])


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
    with pytest.raises(FociError, match=r"^curve 1, ks: holds values that are not counts >= 1"):
        stack([[[0.5, 0.5]]] * 2, [[1], [1.5]])
    with pytest.raises(FociError, match=r"^curve 2, probs: misses a sum of 1 by 0.1"):
        stack([[[0.5, 0.5]], [[0.5, 0.5]], [[0.5, 0.4]]], [[1]] * 3)
    with pytest.raises(FociError, match=r"^curve 1, probs: cannot be read as numbers"):
        stack([[[0.5, 0.5]] * 2, [[0.5, 0.5], [1.0]]], [[1, 2]] * 2)


def test_targets_and_full_bags_have_to_fit() -> None:
    stacks = stack([[[0.5, 0.5]]] * 2, [[1]] * 2)
    full = [[0.5, 0.5]] * 2
    with pytest.raises(FociError, match=r"full: lengths differ \(full 2, targets 1\)"):
        operating_points(stacks, full, [1])
    with pytest.raises(FociError, match="targets: holds an unknown class"):
        operating_points(stacks, full, [1, 2])
