"""Decisive K: closed forms, bad input and properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from foci.errors import FociError
from foci.metrics import decisive_k, msk, stable_decisive_k
from tests.metrics import order_references
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
    assert decisive_k(*slide, kappa, beta) == order_references.decisive_k(*slide, kappa, beta)
    assert stable_decisive_k(*slide, kappa, beta) == order_references.decisive_k(
        *slide, kappa, beta, stable=True
    )


@quick
@given(both_directions(), kappas)
def test_lies_at_or_after_each_condition_and_stable_after_first(slide: Both, kappa: float) -> None:
    kept, insert_ks, rest, delete_ks, target = slide
    count = decisive_k(*slide, kappa)
    if count is None:
        assert stable_decisive_k(*slide, kappa) is None
        return
    later = max(k for k in insert_ks if k in delete_ks)
    assert 1 <= count <= later
    assert count >= (msk(kept, insert_ks, target, kappa) or math.inf)
    flips = [k for k, row in zip(delete_ks, rest, strict=True) if np.argmax(row) != target]
    assert count >= min(flips)
    assert (stable_decisive_k(*slide, kappa) or math.inf) >= count


@quick
@given(both_directions(), kappas, kappas, st.floats(0, 0.99), st.floats(0, 0.99))
def test_stricter_conditions_never_lower_it(
    slide: Both, k1: float, k2: float, b1: float, b2: float
) -> None:
    loose = decisive_k(*slide, min(k1, k2), max(b1, b2)) or math.inf
    strict = decisive_k(*slide, max(k1, k2), min(b1, b2)) or math.inf
    assert loose <= strict


def test_bad_input_is_refused_in_one_line() -> None:
    kept, rest = two([0.95, 0.95]), two([0.1, 0.1])
    with pytest.raises(FociError, match="delete_ks: shares no count with insert_ks"):
        decisive_k(kept, [1, 2], rest, [16, 32], target=1)
    with pytest.raises(FociError, match="delete_probs: has 3 classes, insert_probs 2"):
        decisive_k(kept, [1, 2], [[0.2, 0.3, 0.5]] * 2, [1, 2], target=1)
    with pytest.raises(FociError, match="ks: holds values that are not counts >= 1"):
        decisive_k(kept, [0, 1], rest, [0, 1], target=1)
    for beta in (-0.1, 1.0, math.nan):
        with pytest.raises(FociError, match="beta: is"):
            decisive_k(kept, [1, 2], rest, [1, 2], target=1, beta=beta)
    with pytest.raises(FociError, match="kappa: is 0"):
        decisive_k(kept, [1, 2], rest, [1, 2], target=1, kappa=0)
    with pytest.raises(FociError, match="target: is class 2"):
        decisive_k(kept, [1, 2], rest, [1, 2], target=2)
