"""Corners of tiles, exact on a lattice and close off it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from foci.reports.models import unpack
from foci.reports.payload import place


def corners(placed: dict) -> NDArray[np.int64]:  # type: ignore[type-arg]
    steps = np.column_stack([unpack(placed.x), unpack(placed.y)])
    return placed.origin + placed.step * steps


def test_a_lattice_comes_back_exactly() -> None:
    rng = np.random.default_rng(1)
    coords = np.column_stack([rng.integers(0, 60, 400), rng.integers(0, 90, 400)]) * 224 + 17
    placed = place(coords, 224)
    assert placed.exact
    assert placed.step == 224
    assert placed.side == 224
    assert (corners(placed) == coords).all()


def test_tiles_that_overlap_keep_their_side() -> None:
    coords = np.array([[0, 0], [128, 0], [256, 128], [384, 128]])
    placed = place(coords, 256)
    assert (placed.step, placed.side) == (128, 256)
    assert (corners(placed) == coords).all()


def test_off_the_lattice_corners_are_rounded() -> None:
    rng = np.random.default_rng(2)
    coords = rng.integers(0, 100_003, (300, 2))
    placed = place(coords, 256)
    assert not placed.exact
    assert max(placed.x[0], placed.y[0]) <= 12
    assert np.abs(corners(placed) - coords).max() <= placed.step / 2


@pytest.mark.parametrize(
    ("coords", "side"),
    [
        ([[0, 0], [256, 0], [768, 0], [1024, 256]], 256),
        ([[5, 5]], 1),
        ([[10, 10], [10, 10]], 1),
    ],
)
def test_without_a_patch_size_the_spacing_is_the_side(coords: list[list[int]], side: int) -> None:
    placed = place(np.array(coords), None)
    assert placed.side == side
    assert (corners(placed) == coords).all()
