"""The map as a picture, against a loop over pixels."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foci.reports.payload import map_raster


def by_loop(scores: list[float], corners: list[tuple[int, int]], side: int, width: int):
    """Every pixel asks every tile whether it covers a part of it, in exact fractions."""
    left, top = min(x for x, _ in corners), min(y for _, y in corners)
    extent = [max(c[axis] for c in corners) - (left, top)[axis] + side for axis in (0, 1)]
    scale = Fraction(width, extent[0])
    height = max(1, math.ceil(extent[1] * scale))

    def shade(score: float) -> int:
        rank = 1 + sum(other > score for other in scores)
        return round(255 - 254 * math.log(rank) / math.log(max(len(scores), 2)))

    picture = np.zeros((height, width), dtype=int)
    for row in range(height):
        for column in range(width):
            for score, (x, y) in zip(scores, corners, strict=True):
                x0, y0 = (x - left) * scale, (y - top) * scale
                over = x0 < column + 1 and x0 + side * scale > column
                if over and y0 < row + 1 and y0 + side * scale > row:
                    picture[row, column] = max(picture[row, column], shade(score))
    return picture


@settings(max_examples=60, deadline=None)
@given(
    corners=st.lists(
        st.tuples(st.integers(-40, 40), st.integers(-40, 40)), min_size=1, max_size=12, unique=True
    ),
    side=st.integers(1, 20),
    width=st.integers(1, 12),
    data=st.data(),
)
def test_every_pixel_shows_the_most_important_tile_that_it_touches(corners, side, width, data):
    scores = data.draw(
        st.lists(
            st.sampled_from([-1.0, 0.0, 0.25, 3.0]), min_size=len(corners), max_size=len(corners)
        )
    )
    drawn = map_raster(np.array(scores), np.array(corners), side, width)
    assert drawn.dtype == np.uint8
    np.testing.assert_array_equal(drawn, by_loop(scores, corners, side, width))


def test_only_the_order_of_the_scores_is_drawn():
    random = np.random.default_rng(0)
    scores, corners = random.normal(size=200), random.integers(0, 9_000, (200, 2))
    drawn = map_raster(scores, corners, 256, 64)
    np.testing.assert_array_equal(drawn, map_raster(np.exp(5 * scores), corners, 256, 64))


def test_a_hot_tile_among_thirty_thousand_is_seen():
    side = 174
    corners = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2) * 256
    scores = np.zeros(len(corners))
    scores[12_345] = 1
    drawn = map_raster(scores, corners, 256, 96)
    assert drawn.shape == (96, 96)
    x, y = corners[12_345] * 96 // (side * 256)
    assert drawn[y, x] == 255
    assert drawn.min() == drawn[0, 0] == 238, "all others share the second rank"
    assert (drawn == 255).sum() <= 4


@pytest.mark.parametrize("width", [1, 7, 300])
def test_one_tile_fills_its_square(width):
    drawn = map_raster(np.array([0.5]), np.array([[1024, 512]]), 256, width)
    np.testing.assert_array_equal(drawn, np.full((width, width), 255))
