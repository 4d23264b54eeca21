"""Ties at the head of a ranking, against counting pairs one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.errors import FociError
from foci.rankings.evidence.ties import tied_share

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


def slow_share(scores: list[float], first: int) -> float:
    """Every tile of the head against every other tile of the bag."""
    head = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:first]
    tied = [any(scores[j] == scores[i] for j in range(len(scores)) if j != i) for i in head]
    return sum(tied) / len(head)


@given(SCORES, st.integers(1, 15))
def test_equals_counting_pairs(scores: list[float], first: int) -> None:
    assert tied_share(scores, first) == pytest.approx(slow_share(scores, first))


@given(SCORES, st.integers(1, 15), st.randoms())
def test_the_order_of_the_tiles_and_a_shift_change_nothing(
    scores: list[float], first: int, chance: object
) -> None:
    moved = list(scores)
    chance.shuffle(moved)  # type: ignore[attr-defined]
    assert tied_share(moved, first) == tied_share(scores, first)
    assert tied_share(np.array(scores) * 2 + 1, first) == tied_share(scores, first)


def test_32_tiles_unless_told_otherwise() -> None:
    scores = [*range(100, 68, -1), 5.0, 5.0]
    assert tied_share(scores) == 0.0
    assert tied_share(scores, first=34) == pytest.approx(2 / 34)


def test_numbers_that_differ_in_the_last_bit_are_no_tie() -> None:
    assert tied_share([1.0, np.nextafter(1.0, 2.0)]) == 0.0


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]], [1.0, float("nan")]])
def test_anything_but_one_number_per_tile_is_refused(scores: list[float]) -> None:
    with pytest.raises(FociError, match=r"^scores: are not one number per tile; "):
        tied_share(scores)


def test_a_head_without_tiles_is_refused() -> None:
    with pytest.raises(FociError, match=r"^first: is 0; "):
        tied_share([1.0], first=0)
