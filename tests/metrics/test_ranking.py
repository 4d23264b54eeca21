"""Agreement of rankings with each other and with marked tiles."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from foci.metrics import average_precision, jaccard_at_k, precision_at_k, spearman
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


def bag(seed: int, *, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 8, size=60).astype(float) if ties else rng.normal(size=60)
    return scores, (rng.random(60) < 0.2).astype(int)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_scikit_learn(seed: int, ties: bool) -> None:
    scores, truth = bag(seed, ties=ties)
    want = average_precision_score(truth, scores)
    assert average_precision(scores, truth) == pytest.approx(want, abs=1e-12)


tiles = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12)


@quick
@given(tiles.filter(lambda bag: any(mark for _, mark in bag)), st.randoms(use_true_random=False))
def test_order_on_disk_does_not_matter_where_ties_are_shared(
    bag: list[tuple[int, bool]], random: object
) -> None:
    shuffled = list(bag)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    (scores, truth), (scores_2, truth_2) = (zip(*tiles, strict=True) for tiles in (bag, shuffled))
    once, again = average_precision(scores, truth), average_precision(scores_2, truth_2)
    assert once == pytest.approx(again, abs=1e-12)


def test_perfect_and_inverted_rankings() -> None:
    truth = [1, 1, 0, 0]
    best, worst = [4, 3, 2, 1], [1, 2, 3, 4]
    assert average_precision(best, truth) == precision_at_k(best, truth, 2) == 1
    assert precision_at_k(worst, truth, 2) == 0
    assert average_precision(worst, truth) == pytest.approx((1 / 3 + 2 / 4) / 2)


def test_precision_needs_no_marked_tile() -> None:
    assert precision_at_k([1, 2], [0, 0], 2) == 0
