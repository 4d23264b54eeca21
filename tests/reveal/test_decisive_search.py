"""Decisive counts from few deletions: against every count."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foci.reveal import decisive_curves
from tests.reveal.test_refinement import opened, seen

GRID = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def inserted(n: int, k: int) -> dict[int, Tensor]:
    """What :class:`Counting` says of the first tiles: the margin is their number."""
    return {
        j: torch.tensor([j / (j + 1), 1 / (j + 1)], dtype=torch.float64) for j in range(1, k + 1)
    }


@given(st.integers(2, 300), st.integers(1, 60), st.integers(1, 299))
def test_conditions_that_stay_true_are_found_exactly(n: int, enough: int, flips: int) -> None:
    bag = opened(n)
    known = inserted(n, min(n, 40))
    kept, left = decisive_curves(
        bag, range(n), known, [lambda p: seen(p) >= enough], lambda p: seen(p) <= n - flips,
        grid=GRID,
    )  # fmt: skip
    want = max(enough, flips)
    found = [k for k in left if seen(kept[k]) >= enough and seen(left[k]) <= n - flips]
    assert min(found, default=None) == (want if want <= min(256, n - 1) else None)
    assert all(seen(p) == k for k, p in kept.items())
    assert all(seen(p) == n - k for k, p in left.items())


@given(st.integers(5, 200), st.integers(2, 60))
def test_nothing_is_deleted_where_the_tiles_do_not_suffice(n: int, enough: int) -> None:
    _, left = decisive_curves(
        opened(n), range(n), inserted(n, n), [lambda p: seen(p) >= enough], lambda p: False,
        grid=GRID, reported=(3, 500),
    )  # fmt: skip
    assert set(left) <= {3, *(k for k in range(1, n) if k >= enough)}
    assert 3 in left


def test_no_count_is_computed_twice() -> None:
    bag = opened(100)
    _, left = decisive_curves(
        bag, range(100), inserted(100, 100), [lambda p: seen(p) >= 1, lambda p: seen(p) >= 20],
        lambda p: seen(p) <= 70, grid=GRID, reported=(1, 2),
    )  # fmt: skip
    assert sorted(left) == [1, 2, 4, 8, 16, 24, 28, 29, 30, 32]
    assert len(bag.backbone.asked) == len(left)  # type: ignore[union-attr]
