"""The paper's spread over seeds is that of the population."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.errors import FociError
from foci.metrics import seed_spread
from tests.metrics.strategies import quick


@quick
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=6), st.floats(-50, 50))
def test_equals_the_population_form_and_ignores_a_shift(values: list[float], shift: float) -> None:
    assert seed_spread(values) == pytest.approx(statistics.pstdev(values), abs=1e-9)
    moved = [value + shift for value in values]
    assert seed_spread(moved) == pytest.approx(seed_spread(values), abs=1e-9)


def test_one_seed_and_two() -> None:
    assert seed_spread([3.0]) == 0
    assert seed_spread([1.0, 3.0]) == 1  # the sample form would be 1.41


def test_bad_input_is_refused() -> None:
    with pytest.raises(FociError, match="values: is empty"):
        seed_spread([])
    with pytest.raises(FociError, match="values: contains NaN"):
        seed_spread([1.0, float("nan")])
