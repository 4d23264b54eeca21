"""Order and refusals of a ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.errors import FociError
from foci.rankings import Ranking


@given(st.lists(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0, np.inf]), min_size=1))
def test_descending_with_ties_by_tile_index(scores: list[float]) -> None:
    ranking = Ranking("r", "s", np.array(scores))
    want = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    assert ranking.order.tolist() == want
    assert ranking.order.dtype == np.int64
    assert ranking.ranks[ranking.order].tolist() == list(range(len(scores)))


def test_scores_are_a_read_only_copy() -> None:
    scores = np.array([1, 2], dtype=np.float32)
    ranking = Ranking("r", "s", scores)  # type: ignore[arg-type]
    scores[0] = 9
    assert ranking.scores.tolist() == [1.0, 2.0]
    assert ranking.scores.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        ranking.scores[0] = 3


@pytest.mark.parametrize("shape", [(0,), (2, 2)])
def test_anything_but_one_score_per_tile_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(FociError, match=r"^slide-7: the ranking 'mine' has shape \["):
        Ranking("mine", "slide-7", np.zeros(shape))


def test_nan_is_refused_with_slide_tile_and_count() -> None:
    message = r"^slide-7: the ranking 'mine' is NaN at tile 1 \(2 of 3 tiles\); check"
    with pytest.raises(FociError, match=message):
        Ranking("mine", "slide-7", np.array([0.0, np.nan, np.nan]))
