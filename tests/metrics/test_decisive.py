"""Decisive K: of one slide, of a cohort at once, and which measure an axis rests on."""

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from foci.metrics import (
    Stack,
    already_minimal,
    classes_without_decisive_sets,
    decisive_k,
    decisive_points,
    msk,
    necessity_axis,
    operating_points,
    stable_decisive_k,
    stack,
)
from tests.metrics import references
from tests.metrics.strategies import Curve, curves, kappas, quick

Both = tuple[NDArray[np.float64], list[int], NDArray[np.float64], list[int], int]


def two(p: list[float]) -> np.ndarray:
    return np.column_stack([1 - np.array(p), p])


@st.composite
def both_directions(draw: st.DrawFn) -> Both:
    """Insertion and deletion curves with counts of their own, some shared."""
    inserted: Curve = draw(curves(n_classes=3))
    other: Curve = draw(curves(n_classes=3))
    shared = inserted[1][draw(st.integers(0, len(inserted[1]) - 1))]
    delete_ks = sorted({*other[1], shared, *draw(st.sampled_from([(), (0,)]))})
    rows = np.resize(other[0], (len(delete_ks), 3))
    return inserted[0], inserted[1], rows, delete_ks, inserted[2]


def test_both_conditions_have_to_hold_at_the_same_count() -> None:
    kept, rest = two([0.95, 0.5, 0.95, 0.95]), two([0.9, 0.1, 0.6, 0.4])
    ks = [1, 2, 3, 4]
    assert decisive_k(kept, ks, rest, ks, target=1) == 4
    assert msk(kept, ks, target=1) == 1


def test_the_papers_form_asks_for_a_low_probability_instead_of_a_flip() -> None:
    kept, rest = two([0.95] * 4), two([0.49, 0.21, 0.2, 0.1])
    ks = [1, 2, 3, 4]
    assert decisive_k(kept, ks, rest, ks, target=1) == 1
    assert decisive_k(kept, ks, rest, ks, target=1, beta=0.2) == 3
    flat = [[0.15, 0.15, 0.7], [0.3, 0.3, 0.4]]  # p <= beta is met without a flip of a third class
    many = [[0.02, 0.95, 0.03]] * 2
    assert decisive_k(many, [1, 2], flat, [1, 2], target=1, beta=0.2) == 1


def test_an_absence_has_no_decisive_set() -> None:
    ks = list(range(1, 10))
    assert decisive_k(two([0.95] * 9), ks, two([0.95] * 9), ks, target=1) is None
    assert stable_decisive_k(two([0.95] * 9), ks, two([0.95] * 9), ks, target=1) is None


def test_a_flip_that_flips_back_is_decisive_but_not_stable() -> None:
    kept, rest = two([0.95] * 3), two([0.4, 0.6, 0.6])
    assert decisive_k(kept, [1, 2, 3], rest, [1, 2, 3], target=1) == 1
    assert stable_decisive_k(kept, [1, 2, 3], rest, [1, 2, 3], target=1) is None


def test_only_counts_known_in_both_directions_are_candidates() -> None:
    kept, rest = two([0.95] * 4), two([0.1] * 4)
    assert decisive_k(kept, [1, 2, 3, 4], rest, [0, 3, 4, 7], target=1) == 3


def test_deleting_nothing_is_no_candidate() -> None:
    assert decisive_k(two([0.95]), [1], two([0.1]), [0], target=1) is None  # one tile
    assert stable_decisive_k(two([0.95]), [1], two([0.1]), [0], target=1) is None


@quick
@given(both_directions(), kappas, st.sampled_from([None, 0.0, 0.2, 0.5]))
def test_equals_the_definition(slide: Both, kappa: float, beta: float | None) -> None:
    assert decisive_k(*slide, kappa, beta) == references.decisive_k(*slide, kappa, beta)
    assert stable_decisive_k(*slide, kappa, beta) == references.decisive_k(
        *slide, kappa, beta, stable=True
    )


@quick
@given(both_directions(), kappas, kappas, st.floats(0, 0.99), st.floats(0, 0.99))
def test_stricter_conditions_never_lower_it(
    slide: Both, k1: float, k2: float, b1: float, b2: float
) -> None:
    loose = decisive_k(*slide, min(k1, k2), max(b1, b2)) or math.inf
    strict = decisive_k(*slide, max(k1, k2), min(b1, b2)) or math.inf
    assert loose <= strict


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


def stacked(made: dict[str, list[Any]]) -> tuple[tuple[Stack, ...], tuple[Stack, ...]]:
    kept = stack(made["kept"], made["ks"])
    return kept, stack(made["rest"], made["without"], lowest=0)


@quick
@given(st.integers(0, 10_000), kappas, st.sampled_from([None, 0.2]))
def test_equals_one_slide_at_a_time(seed: int, kappa: float, beta: float | None) -> None:
    made = cohort(np.random.default_rng(seed), 30)
    insert, delete = stacked(made)
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


@quick
@given(st.integers(0, 10_000), st.integers(1, 14))
def test_a_smaller_budget_only_hides_counts(seed: int, k_max: int) -> None:
    made = cohort(np.random.default_rng(seed), 20)
    insert, delete = stacked(made)
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


def test_a_slide_of_one_tile_needs_no_deletion_curve() -> None:
    assert decisive_points(stack([[SURE]], [[1]]), (), [1], [1]).outcome.tolist() == [
        "not assessable"
    ]


@quick
@given(st.integers(0, 10_000))
def test_one_confidence_per_slide(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = cohort(rng, 12)
    insert, delete = stacked(made)
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


NONE = math.nan


def test_a_tenth_of_the_slides_under_one_ranking_is_enough() -> None:
    targets = np.repeat([0, 2], 10)
    nothing = np.full(20, NONE)
    once = nothing.copy()
    once[0] = 7
    assert classes_without_decisive_sets([nothing, once], targets) == (2,)
    assert classes_without_decisive_sets([nothing, nothing], targets) == (0, 2)
    eleven = np.append(once[:10], [NONE])  # one of eleven is less than a tenth
    assert classes_without_decisive_sets([eleven], [0] * 11) == (0,)


def test_shares_of_random_orders_are_averaged() -> None:
    orders = np.full((10, 10), NONE)
    orders[0, :5] = 3  # 5 % of all, 50 % of one order
    assert classes_without_decisive_sets([orders], [1] * 10) == (1,)
    orders[1, :5] = 3
    assert classes_without_decisive_sets([orders], [1] * 10) == ()


def test_fewer_than_a_third_under_either_ranking() -> None:
    a, b = np.full(9, NONE), np.full(9, NONE)
    a[:2], b[1:2] = 4, 4
    assert necessity_axis(a, b) == "deletion area"
    b[5] = 9  # the third slide of nine, under the other ranking
    assert necessity_axis(a, b) == necessity_axis(b, a) == "decisive K"


def test_axis_against_random_orders_averages_them() -> None:
    b = np.full((4, 6), NONE)
    b[0] = 5  # every slide under one order of four: a quarter
    assert necessity_axis(np.full(6, NONE), b) == "deletion area"
    b[1] = 5
    assert necessity_axis(np.full(6, NONE), b) == "decisive K"


def test_already_minimal_where_the_median_is_one() -> None:
    assert already_minimal([1, 1, NONE])
    assert not already_minimal([1, 1, NONE, NONE])  # half failed
    assert not already_minimal([1, 2])
    assert already_minimal([[1, 9], [1, 1]])
    assert not already_minimal([NONE])
