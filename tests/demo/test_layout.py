"""Tissue on the canvas."""

import numpy as np
import pytest

from foci.demo.cohort import FEWEST, MOST, Layout, lay_out


@pytest.fixture(scope="module")
def layouts() -> list[Layout]:
    return [lay_out(np.random.default_rng(seed)) for seed in range(60)]


def test_tiles_lie_inside_the_canvas_once_and_row_by_row(layouts: list[Layout]) -> None:
    for layout in layouts:
        columns, rows = layout.cells.T
        assert columns.min() >= 1
        assert rows.min() >= 1
        assert columns.max() <= layout.columns - 2
        assert rows.max() <= layout.rows - 2
        assert (np.diff(rows * layout.columns + columns) > 0).all()


def test_slides_differ_in_size_and_in_the_number_of_pieces(layouts: list[Layout]) -> None:
    sizes = [len(layout) for layout in layouts]
    assert FEWEST <= min(sizes) < 180
    assert 400 < max(sizes) <= MOST
    assert 230 < np.mean(sizes) < 310
    counts = [layout.piece.max() + 1 for layout in layouts]
    assert {1, 2, 3} <= set(counts)


def test_islands_are_dropped(layouts: list[Layout]) -> None:
    smallest = [np.bincount(layout.piece).min() for layout in layouts if len(layout) > FEWEST]
    assert min(smallest) >= 8
