"""Touching tiles, connected pieces and growing regions, against a slow reference."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foci.demo.cohort import grow, neighbours, pieces

Cells = list[tuple[int, int]]
some_cells = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=40, unique=True
)


def touch(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a != b and max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1


def reachable(cells: Cells, first: int) -> set[int]:
    """Every tile that a chain of touching tiles links to ``first``."""
    reached = {first}
    while True:
        more = {
            j for i in reached for j in range(len(cells)) if touch(cells[i], cells[j])
        } - reached
        if not more:
            return reached
        reached |= more


@given(some_cells)
def test_neighbours_touch_by_side_or_corner(cells: Cells) -> None:
    found = neighbours(np.array(cells))
    for tile, own in enumerate(found):
        assert sorted(own) == [j for j, c in enumerate(cells) if touch(cells[tile], c)]


@given(some_cells)
def test_pieces_are_what_chains_of_neighbours_link(cells: Cells) -> None:
    piece = pieces(neighbours(np.array(cells)))
    for tile in range(len(cells)):
        assert set(np.flatnonzero(piece == piece[tile])) == reachable(cells, tile)
    firsts = [int(np.flatnonzero(piece == number)[0]) for number in range(piece.max() + 1)]
    assert firsts == sorted(firsts)


@given(some_cells, st.integers(1, 40), st.randoms(use_true_random=False))
def test_a_region_is_connected_and_as_large_as_there_is_room(
    cells: Cells, size: int, random: Random
) -> None:
    appeal = np.array([random.random() for _ in cells])
    region = grow(neighbours(np.array(cells)), 0, appeal, size, np.ones(len(cells), dtype=bool))
    inside = [c for c, own in zip(cells, region, strict=True) if own]
    assert region[0]
    assert len(reachable(inside, 0)) == len(inside) == min(size, len(reachable(cells, 0)))


def test_the_most_appealing_neighbour_joins_first_and_borders_hold() -> None:
    cells = np.array([[x, 0] for x in range(6)])
    appeal = np.array([0.0, 1.0, 0.0, 2.0, 9.0, 9.0])
    within = np.array([True, True, True, True, False, True])
    region = grow(neighbours(cells), 2, appeal, 3, within)
    assert np.flatnonzero(region).tolist() == [1, 2, 3]
    everything = grow(neighbours(cells), 2, appeal, 6, within)
    assert np.flatnonzero(everything).tolist() == [0, 1, 2, 3]
