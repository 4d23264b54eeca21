"""Which slides a page carries in full."""

import numpy as np
import pytest

from foci.reports.payload import by_interest, within_bytes


@pytest.mark.parametrize("n", [1, 2, 3, 7, 50, 333])
def test_every_slide_is_named_once(n: int) -> None:
    assert sorted(by_interest(np.random.default_rng(n).permutation(n))) == list(range(n))


def test_ends_and_middle_come_early() -> None:
    order = by_interest(range(100))
    assert order[:3] == [0, 99, 50]
    first = sorted(order[:24])
    assert set(range(8)) < set(first)
    assert set(range(92, 100)) < set(first)
    assert np.diff(first).max() <= 20, "the middle is not left empty"


def test_slides_are_taken_until_the_limit() -> None:
    assert within_bytes([3, 1, 0, 2], [10, 20, 30, 40], 60) == [1, 3]
    assert within_bytes([3, 1, 0, 2], [10, 20, 30, 40], 70) == [0, 1, 3]
    assert within_bytes([3, 1, 0, 2], [10, 20, 30, 40], 1000) == [0, 1, 2, 3]


def test_one_slide_at_least() -> None:
    assert within_bytes([1, 0], {0: 10, 1: 99}, 5) == [1]
