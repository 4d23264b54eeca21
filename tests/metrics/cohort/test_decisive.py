"""Decisive K of a cohort: the numbers of single slides, the four outcomes, the budget."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.errors import FociError
from foci.metrics import decisive_k, decisive_points, operating_points, stable_decisive_k, stack
from foci.metrics.curve import first_counts
from foci.metrics.decisive import decisive_counts
from tests.metrics.strategies import kappas, quick

SURE, GONE, KEPT = [0.05, 0.95], [0.9, 0.1], [0.1, 0.9]


def number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def cohort(rng: np.random.Generator, n_slides: int) -> dict[str, list[Any]]:
    """Slides of 1 to 12 tiles, both directions at every count or at some of them."""
    made: dict[str, list[Any]] = {key: [] for key in ("kept", "ks", "rest", "without", "n", "t")}
    for _ in range(n_slides):
        n = int(rng.integers(1, 13))
        some = rng.random() < 0.3
        ks = np.arange(1, n + 1, 2 if some else 1)
        without = np.arange(0, n) if rng.random() < 0.5 or n < 2 else np.arange(1, n)
        made["kept"].append(rng.dirichlet([0.3, 0.3, 0.3], len(ks)))
        made["rest"].append(rng.dirichlet([0.3, 0.3, 0.3], len(without)))
        made["ks"].append(ks)
        made["without"].append(without)
        made["n"].append(n)
        made["t"].append(int(rng.integers(3)))
    return made


@quick
@given(st.integers(0, 10_000), kappas, st.sampled_from([None, 0.2]))
def test_equals_one_slide_at_a_time(seed: int, kappa: float, beta: float | None) -> None:
    made = cohort(np.random.default_rng(seed), 30)
    insert = stack(made["kept"], made["ks"])
    delete = stack(made["rest"], made["without"], lowest=0)
    got = decisive_points(insert, delete, made["t"], made["n"], kappa, 256, beta)
    slides = list(zip(*(made[k] for k in ("kept", "ks", "rest", "without", "t")), strict=True))
    np.testing.assert_array_equal(
        got.count, [number(decisive_k(*slide, kappa, beta)) for slide in slides]
    )
    np.testing.assert_array_equal(
        got.stable, [number(stable_decisive_k(*slide, kappa, beta)) for slide in slides]
    )
    np.testing.assert_array_equal(got.assessable, np.array(made["n"]) > 1)
    assert not got.beyond.any()
    found = ~np.isnan(got.count)
    np.testing.assert_array_equal(got.flips_back, found & (got.stable != got.count))
    if found.any():
        assert got.flip_back_share == got.flips_back.sum() / found.sum()


@quick
@given(st.integers(0, 10_000), st.integers(1, 14))
def test_a_smaller_budget_only_hides_counts(seed: int, k_max: int) -> None:
    made = cohort(np.random.default_rng(seed), 20)
    insert = stack(made["kept"], made["ks"])
    delete = stack(made["rest"], made["without"], lowest=0)
    wide = decisive_points(insert, delete, made["t"], made["n"], 0.5, 256)
    cut = decisive_points(insert, delete, made["t"], made["n"], 0.5, k_max)
    np.testing.assert_array_equal(cut.count, np.where(wide.count <= k_max, wide.count, np.nan))
    hidden = np.isnan(cut.count) & (np.array(made["n"]) - 1 > k_max)
    np.testing.assert_array_equal(cut.beyond, hidden)


def test_the_four_outcomes() -> None:
    # found at 2; N - 1 = 3 > K_max; N - 1 = 2 = K_max and never; one tile
    insert = stack([[SURE] * 2, [SURE] * 2, [SURE] * 2, [SURE]], [[1, 2], [1, 2], [1, 2], [1]])
    delete = stack(
        [[KEPT, GONE], [KEPT, KEPT], [KEPT, KEPT], [KEPT]], [[1, 2], [1, 2], [1, 2], [0]], lowest=0
    )
    got = decisive_points(insert, delete, [1] * 4, n_tiles=[3, 4, 3, 1], k_max=2)
    assert got.outcome.tolist() == ["count", "beyond", "none", "not assessable"]
    np.testing.assert_array_equal(got.count, [2, math.nan, math.nan, math.nan])


def test_without_any_decisive_set_no_share_flips_back() -> None:
    insert, delete = stack([[SURE]], [[1]]), stack([[KEPT]], [[1]], lowest=0)
    assert math.isnan(decisive_points(insert, delete, [1], [2]).flip_back_share)


def test_a_slide_of_one_tile_needs_no_deletion_curve() -> None:
    assert decisive_points(stack([[SURE]], [[1]]), (), [1], [1]).outcome.tolist() == [
        "not assessable"
    ]


@quick
@given(st.integers(0, 10_000))
def test_one_confidence_per_slide(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = cohort(rng, 12)
    insert = stack(made["kept"], made["ks"])
    delete = stack(made["rest"], made["without"], lowest=0)
    each = rng.choice([0.4, 0.6, 0.8], size=12)
    full = np.full((12, 3), 1 / 3)
    got = decisive_points(insert, delete, made["t"], made["n"], each)
    points = operating_points(insert, full, made["t"], each)
    for kappa in np.unique(each):
        rows = each == kappa
        alone = decisive_points(insert, delete, made["t"], made["n"], float(kappa))
        np.testing.assert_array_equal(got.count[rows], alone.count[rows])
        np.testing.assert_array_equal(
            points.msk[rows], operating_points(insert, full, made["t"], float(kappa)).msk[rows]
        )


@quick
@given(st.integers(0, 10_000))
def test_several_confidences_in_one_go(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = cohort(rng, 12)
    insert = stack(made["kept"], made["ks"])
    delete = stack(made["rest"], made["without"], lowest=0)
    targets, sizes, full = np.array(made["t"]), np.array(made["n"]), np.full((12, 3), 1 / 3)
    needed_each = rng.choice([0.4, 0.6, 0.8], size=(3, 12))
    first = first_counts(insert, targets, needed_each)
    decisive = decisive_counts(insert, delete, targets, sizes, needed_each, 256)
    for row, needed in enumerate(needed_each):
        alone = operating_points(insert, full, targets, needed).msk
        np.testing.assert_array_equal(first[row], alone)
        flips = decisive_points(insert, delete, targets, sizes, needed).count
        np.testing.assert_array_equal(decisive[row], flips)


def test_bad_input_is_refused_with_the_slide() -> None:
    insert, delete = stack([[SURE] * 2] * 2, [[1, 2]] * 2), stack([[GONE]], [[1]], lowest=0)
    with pytest.raises(FociError, match="slide 1: has no count up to K_max known in both"):
        decisive_points(insert, delete, [1, 1], [5, 5])
    far = stack([[GONE], [GONE]], [[1], [4]], lowest=0)
    with pytest.raises(FociError, match="slide 1, delete_ks: shares no count"):
        decisive_points(insert, far, [1, 1], [5, 5])
    with pytest.raises(FociError, match="slide 1, ks: holds a count beyond the bag"):
        decisive_points(insert, far, [1, 1], [5, 4])
    with pytest.raises(FociError, match="targets: holds an unknown class"):
        decisive_points(insert, far, [2, 1], [5, 5])
    with pytest.raises(FociError, match=r"kappa: has shape \(3,\) for 2 slides"):
        decisive_points(insert, far, [1, 1], [5, 5], kappa=[0.9] * 3)
    with pytest.raises(FociError, match=r"kappa: is 1\.5"):
        decisive_points(insert, far, [1, 1], [5, 5], kappa=[0.9, 1.5])
    three = stack([[[0.2, 0.3, 0.5]]] * 2, [[1]] * 2, lowest=0)
    with pytest.raises(FociError, match="delete: has other classes than insert"):
        decisive_points(insert, three, [1, 1], [5, 5])
