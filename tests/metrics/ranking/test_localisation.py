"""Against tile truth: scikit-learn is the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from foci.metrics import average_precision, precision_at_k
from tests.metrics.strategies import quick


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
