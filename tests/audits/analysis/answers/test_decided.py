"""Quartiles of counts in which a missing one is infinite."""

import numpy as np
import pytest

from foci.audits.decided import quartiles_of

NAN = float("nan")


def ends(counts: list[float], longer: list[bool]) -> list[tuple[float | None, str | None]]:
    found = quartiles_of(np.array(counts), np.array(longer))
    assert found is not None
    return [(one.value, one.missing) for one in (found.low, found.median, found.high)]


def test_of_no_slide_there_are_none() -> None:
    assert quartiles_of(np.empty((2, 0)), np.empty((2, 0), dtype=bool)) is None


def test_without_missing_counts_they_are_the_usual_ones() -> None:
    counts = [9.0, 1.0, 3.0, 5.0, 7.0]
    assert ends(counts, [True] * 5) == [(3, None), (5, None), (7, None)]


@pytest.mark.parametrize(("longer", "missing"), [([True] * 5, "beyond"), ([False] * 5, "none")])
def test_a_quantile_on_missing_slides_says_why(longer: list[bool], missing: str) -> None:
    assert ends([1.0, 2.0, 3.0, NAN, NAN], longer) == [(2, None), (3, None), (None, missing)]


def test_seeds_are_pooled() -> None:
    counts, longer = np.array([[1.0, 3.0], [5.0, NAN]]), np.zeros((2, 2), dtype=bool)
    pooled = quartiles_of(counts, longer)
    assert pooled == quartiles_of(counts.T, longer.T)
    assert pooled is not None
    assert pooled.median.value == 4
