"""Overlap and rank correlation of two rankings."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.metrics import jaccard_at_k, spearman
from tests.metrics.strategies import quick

pairs = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 5), min_size=n, max_size=n),
        st.lists(st.integers(0, 5), min_size=n, max_size=n),
        st.integers(1, n),
    )
)


@quick
@given(pairs)
def test_agreement_is_symmetric_and_bounded(case: tuple[list[int], list[int], int]) -> None:
    a, b, k = case
    assert jaccard_at_k(a, b, k) == jaccard_at_k(b, a, k)
    assert 0 <= jaccard_at_k(a, b, k) <= 1
    assert jaccard_at_k(a, a, k) == jaccard_at_k(a, b, len(a)) == 1
    there, back = spearman(a, b), spearman(b, a)
    if math.isnan(there):
        assert len(set(a)) == 1 or len(set(b)) == 1
    else:
        assert there == pytest.approx(back)
        assert -1 <= there <= 1
        assert spearman(a, a) == pytest.approx(1)
        assert spearman(a, [-x for x in b]) == pytest.approx(-there)


def test_ties_go_by_tile_index() -> None:
    assert jaccard_at_k([1, 1, 1, 1], [4, 3, 2, 1], k=2) == 1
    assert jaccard_at_k([1, 1, 1, 1], [1, 2, 3, 4], k=2) == 0


def test_only_the_order_matters() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50))
    assert spearman(np.exp(a), b) == pytest.approx(spearman(a, b))
    assert jaccard_at_k(np.exp(a), b, 10) == jaccard_at_k(a, b, 10)


def test_random_rankings_overlap_as_documented() -> None:
    rng = np.random.default_rng(0)
    n, k = 1000, 100
    values = [jaccard_at_k(rng.random(n), rng.random(n), k) for _ in range(200)]
    assert np.mean(values) == pytest.approx(k / (2 * n - k), abs=0.003)
