"""Reach on correctly and on wrongly classified slides."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.metrics import reach, reach_split
from tests.metrics.strategies import quick

slides = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(1, 9)), st.integers(0, 2), st.integers(0, 2)),
    min_size=1,
    max_size=20,
)


def test_spurious_reach_shows_on_the_wrong_slides() -> None:
    split = reach_split([1, None, 2, 5], predictions=[0, 0, 1, 1], labels=[0, 0, 0, 0])
    assert (split.correct, split.wrong) == (0.5, 1.0)
    assert (split.n_correct, split.n_wrong) == (2, 2)


def test_a_part_without_slides_has_no_reach() -> None:
    assert math.isnan(reach_split([1], [2], [2]).wrong)
    assert math.isnan(reach_split([1], [0], [2]).correct)


@quick
@given(slides)
def test_the_parts_weighted_by_size_give_reach(rows: list[tuple[int | None, int, int]]) -> None:
    msks, predictions, labels = (list(column) for column in zip(*rows, strict=True))
    split = reach_split(msks, predictions, labels)
    reached = sum(
        share * n
        for share, n in ((split.correct, split.n_correct), (split.wrong, split.n_wrong))
        if n
    )
    assert split.n_correct + split.n_wrong == len(rows)
    assert reached / len(rows) == pytest.approx(reach(msks))
