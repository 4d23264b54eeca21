"""Wilcoxon's signed-rank test, against every assignment of signs and against scipy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from foci.metrics import wilcoxon


def brute_force(differences: list[float]) -> tuple[float, float]:
    """W and its two-sided p over every assignment of signs."""
    size = [abs(d) for d in differences]
    below = [sum(other < value for other in size) for value in size]
    ranks = [b + (size.count(value) + 1) / 2 for b, value in zip(below, size, strict=True)]
    positive = sum(r for r, d in zip(ranks, differences, strict=True) if d > 0)
    total = sum(ranks)
    statistic = min(positive, total - positive)
    sums = [
        sum(r for r, sign in zip(ranks, signs, strict=True) if sign)
        for signs in itertools.product([0, 1], repeat=len(ranks))
    ]
    extreme = sum(min(s, total - s) <= statistic for s in sums)
    return statistic, min(1.0, extreme / len(sums))


@pytest.mark.parametrize("seed", range(8))
def test_wilcoxon_is_exact_for_few_distinct_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base, foci = rng.normal(size=(2, 4 + seed % 5))
    result = wilcoxon(base, foci)
    assert result.method == "exact"
    statistic, p = brute_force(list(foci - base))
    assert (result.statistic, result.pvalue) == (statistic, pytest.approx(p, abs=1e-12))


@given(st.lists(st.integers(-4, 4).filter(bool), min_size=1, max_size=10))
def test_wilcoxon_is_exact_with_ties(differences: list[int]) -> None:
    result = wilcoxon([0] * len(differences), differences)
    assert result.method == "exact"
    statistic, p = brute_force(differences)
    assert (result.statistic, result.pvalue) == (statistic, pytest.approx(p, abs=1e-12))


def test_nine_pairs_cannot_give_less_than_their_signs_allow() -> None:
    assert wilcoxon([5] * 9, [3] * 9).pvalue == 2 / 2**9


def test_many_pairs_use_the_normal_approximation() -> None:
    rng = np.random.default_rng(0)
    for base, foci in (rng.normal(size=(2, 51)), rng.integers(0, 9, size=(2, 90))):
        result = wilcoxon(base, foci)
        assert result.method == "normal"
        difference = np.subtract(foci, base)
        want = stats.wilcoxon(difference[difference != 0], method="approx")
        assert (result.statistic, result.pvalue) == (want.statistic, pytest.approx(want.pvalue))


def test_rounding_makes_no_difference_and_breaks_no_tie() -> None:
    base, more = np.array([1.0, 32.0, 200.0, 5.0, 9.0]), np.array([4.0, 4.0, 4.0, 4.0, 1.0])
    thirds = wilcoxon(base, base + more / 3)
    whole = wilcoxon(3 * base, 3 * base + more)
    assert (thirds.statistic, thirds.pvalue) == (whole.statistic, whole.pvalue)
    zero = 0.1 + 0.2  # not 0.3
    assert wilcoxon([0.3, 1.0], [zero, 2.0]).n_pairs == 1


def test_zero_differences_are_dropped() -> None:
    padded = wilcoxon([1.0, 2.0, 3.0, 4.0], [1.0, 2.5, 5.0, 3.9])
    alone = wilcoxon([2.0, 3.0, 4.0], [2.5, 5.0, 3.9])
    assert (padded.n_pairs, padded.pvalue) == (alone.n_pairs, alone.pvalue)
    assert padded.median_difference == pytest.approx(0.25)
    assert alone.median_difference == pytest.approx(0.5)
    same = wilcoxon([1, 2], [1, 2])
    assert (same.pvalue, same.n_pairs) == (1.0, 0)
