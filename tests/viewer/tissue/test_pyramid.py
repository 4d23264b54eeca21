"""Pictures of a pyramid cover the slide, once each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foci.slides.image import Box
from foci.viewer.pictures import SIDE, Pyramid

sizes = st.integers(1, 5000)


@given(sizes, sizes, st.integers(0, 99))
def test_the_pictures_of_a_level_cover_the_slide_once(width: int, height: int, x: int) -> None:
    pyramid = Pyramid(Box(x, 7, width, height))
    for level in range(pyramid.coarsest, pyramid.finest + 1):
        down = 2 ** (pyramid.finest - level)
        columns = -(-width // (SIDE * down))
        rows = -(-height // (SIDE * down))
        covered = np.zeros((height, width), dtype=np.uint8)
        for column in range(columns):
            for row in range(rows):
                found = pyramid.part(level, column, row)
                assert found is not None
                box, size = found
                assert 1 <= size[0] <= SIDE
                assert 1 <= size[1] <= SIDE
                left, top = box.x - x, box.y - 7
                covered[top : top + box.height, left : left + box.width] += 1
        assert (covered == 1).all()
        assert pyramid.part(level, columns, 0) is None
        assert pyramid.part(level, 0, rows) is None


@given(sizes, sizes)
def test_the_coarsest_level_is_one_picture(width: int, height: int) -> None:
    pyramid = Pyramid(Box(0, 0, width, height))
    found = pyramid.part(pyramid.coarsest, 0, 0)
    assert found is not None
    assert found[0] == Box(0, 0, width, height)
    assert pyramid.part(pyramid.coarsest, 1, 0) is None
    assert pyramid.part(pyramid.coarsest - 1, 0, 0) is None
    assert pyramid.part(pyramid.finest + 1, 0, 0) is None
