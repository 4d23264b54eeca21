"""Values over seeds: means, both standard deviations, what is missing and why."""

import math
import operator

import pytest

from foci.metrics import shi
from foci.studies.read import Value, combine, of_means


def test_population_and_sample() -> None:
    seeds = {"1": 2.0, "2": 4.0, "3": 9.0}
    assert Value.over(seeds).std == pytest.approx(math.sqrt((9 + 1 + 16) / 3))
    assert Value.over(seeds, spread="sample").std == pytest.approx(math.sqrt((9 + 1 + 16) / 2))
    assert Value.over({"1": 2.0}).std is None


def test_what_is_not_a_number_is_a_gap() -> None:
    value = Value.over({"1": 2.0, "2": math.nan, "3": math.inf}, {"4": "it diverged"})
    assert (value.mean, value.n) == (2.0, 1)
    assert value.gap == "seed 4: it diverged; seeds 2, 3: is not defined"
    assert Value.absent("not run yet").gap == "not run yet"
    assert Value.over({"1": 1.0}).gap is None


def test_differences_are_taken_seed_by_seed() -> None:
    base = Value.over({"1": 1.0, "2": 5.0}, {"3": "no slide reaches 0.9"})
    foci = Value.over({"1": 2.0, "3": 4.0}, {"2": "it diverged"})
    found = combine(operator.sub, foci, base)
    assert dict(found.seeds) == {"1": 1.0}
    assert found.gap == "seed 2: it diverged; seed 3: no slide reaches 0.9"


def test_shi_is_taken_of_means_over_shared_seeds() -> None:
    base = Value.over({"1": 4.0, "2": 8.0, "3": 100.0})
    foci = Value.over({"1": 2.0, "2": 2.0}, {"3": "it diverged"})
    found = of_means(shi, base, foci)
    assert found.mean == pytest.approx((6 - 2) / 6)
    assert dict(found.seeds) == pytest.approx({"1": 0.5, "2": 0.75})
    assert found.std == pytest.approx(0.125)
    assert found.gap == "seed 3: it diverged"


def test_printed_numbers_have_no_seeds() -> None:
    found = of_means(shi, Value(7.33, 0.39, 3), Value(3.21, 0.38, 3))
    assert found.mean == pytest.approx(0.562, abs=5e-4)
    assert (found.std, found.n) == (None, 3)
    assert combine(operator.sub, Value(3.21), Value.absent("not printed")).mean is None
