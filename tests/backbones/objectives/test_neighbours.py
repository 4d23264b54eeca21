"""Neighbourhoods against comparing all pairs of tiles."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from foci.backbones.models.attrimil import neighbourhoods

STRIDE = 512
OFFSETS = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]


def all_pairs(coords: Tensor) -> list[list[int]]:
    places = [tuple(place) for place in coords.tolist()]
    return [
        [
            places.index(wanted) if (wanted := (x + dx * STRIDE, y + dy * STRIDE)) in places else i
            for dx, dy in OFFSETS
        ]
        for i, (x, y) in enumerate(places)
    ]


cells = st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from([0, 0, 0, 1, 200]))


@settings(deadline=None)
@given(st.lists(cells, min_size=1, max_size=30, unique=True))
def test_equals_comparing_all_pairs(tiles: list[tuple[int, int, int]]) -> None:
    """The third number shifts a tile off the grid, as a second tissue contour would."""
    coords = torch.tensor([[x * STRIDE + shift, y * STRIDE + shift] for x, y, shift in tiles])
    assert neighbourhoods(coords, STRIDE).tolist() == all_pairs(coords)


def test_full_grid_of_nine() -> None:
    coords = STRIDE * torch.cartesian_prod(torch.arange(3), torch.arange(3))
    around = neighbourhoods(coords, STRIDE)
    assert around[4].tolist() == list(range(9))
    assert around[0].tolist() == [0, 0, 0, 0, 0, 1, 0, 3, 4]


def test_one_tile_is_its_own_neighbour() -> None:
    assert neighbourhoods(torch.tensor([[7, 9]]), STRIDE).tolist() == [[0] * 9]


def test_columns_do_not_wrap_around() -> None:
    """One pixel to the right, just where the next tile above or below would be."""
    for near in ([1, STRIDE - 1], [-1, 1]):
        coords = torch.tensor([[0, 0], [0, STRIDE], near])
        assert neighbourhoods(coords, STRIDE).tolist() == all_pairs(coords)


def test_tiles_at_one_place_stay_their_own_centre() -> None:
    around = neighbourhoods(torch.tensor([[0, 0], [0, 0], [STRIDE, 0]]), STRIDE)
    assert around[:, 4].tolist() == [0, 1, 2]
    assert around[1, 7] == 2


def test_whole_numbered_floats_are_read_as_positions() -> None:
    coords = torch.tensor([[0.0, 0.0], [0.0, 512.0]], dtype=torch.float64)
    assert neighbourhoods(coords, STRIDE).tolist() == all_pairs(coords.long())
