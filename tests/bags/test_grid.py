"""Spacing of tiles, also where every tissue piece has a grid of its own."""

import numpy as np
import pytest

from foci.bags.bag import share_on_grid, spacing
from tests.makers import features as write


def test_contours_with_different_origins() -> None:
    coords = write.contour_grid(512)
    assert spacing(coords) == 512
    assert share_on_grid(coords, 512) == 1


def test_gaps_do_not_hide_the_spacing() -> None:
    coords = write.grid(40, 256, 8)[[0, 1, 2, 5, 8, 9, 11, 16, 17, 18, 25]]
    assert spacing(coords) == 256


@pytest.mark.parametrize("coords", [[[5, 5]], [[0, 0], [3, 7]]])
def test_no_neighbours_no_spacing(coords: list[list[int]]) -> None:
    assert spacing(np.array(coords)) is None
    assert share_on_grid(np.array(coords), 256) == 1


def test_jitter_is_not_a_grid() -> None:
    coords = np.stack([np.arange(0, 5000, 251) + np.arange(20) ** 2, np.zeros(20)], 1)
    assert share_on_grid(coords, 251) < 0.2
