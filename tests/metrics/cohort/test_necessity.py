"""When an axis counts, and which necessity axis is used."""

import math

import numpy as np
import pytest

from foci.errors import FociError
from foci.metrics import already_minimal, classes_without_decisive_sets, necessity_axis

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


def test_bad_input_is_refused() -> None:
    with pytest.raises(FociError, match="counts: is empty"):
        classes_without_decisive_sets([], [0])
    with pytest.raises(FociError, match="lengths differ"):
        classes_without_decisive_sets([[1, 2]], [0])
    with pytest.raises(FociError, match="lengths differ"):
        necessity_axis([1, 2], [1])
    with pytest.raises(FociError, match="msks: holds a count below 1"):
        already_minimal([0.0])
