"""Tiles lie where they should, to the pixel: every square of a slide has its own colour."""

from pathlib import Path

import numpy as np
import pytest

from foci.errors import SlideError
from foci.slides.image import SlideImage
from foci.slides.thumbnails import tile_pictures
from foci.slides.tiling import TilingSettings, lay_tiles
from tests.makers.slides import squares, write_bounded, write_slide

GLASS = ((0, 0), (3, 1), (4, 3))
COLUMNS, ROWS = 5, 4


def check_every_tile(slide: SlideImage, side: int, origin: tuple[int, int] = (0, 0)) -> None:
    """Tiles are exactly the squares that are no glass, and every pixel has their colour."""
    grid = lay_tiles(slide, TilingSettings())
    cells = [(c, r) for r in range(ROWS) for c in range(COLUMNS) if (c, r) not in GLASS]
    expected = [[origin[0] + c * side, origin[1] + r * side] for c, r in cells]
    assert grid.coords.tolist() == expected
    assert grid.side == side
    shades = squares(COLUMNS, ROWS, 1, GLASS)
    for threads in (1, 2):
        pictures = list(tile_pictures(slide, grid, threads))
        assert len(pictures) == len(cells)
        for (column, row), picture in zip(cells, pictures, strict=True):
            assert picture.shape == (256, 256, 3)
            assert (picture == shades[row, column]).all()


@pytest.mark.parametrize(("mpp", "side"), [(0.5, 256), (0.25, 512), (0.2525, 512), (0.499, 256)])
def test_at_20x_and_40x(tmp_path: Path, mpp: float, side: int) -> None:
    pixels = squares(COLUMNS, ROWS, side, GLASS)
    with SlideImage(write_slide(tmp_path / "a.tiff", pixels, mpp)) as slide:
        check_every_tile(slide, side)


def test_at_40x_without_a_level_of_20x(tmp_path: Path) -> None:
    pixels = squares(COLUMNS, ROWS, 512, GLASS)
    with SlideImage(write_slide(tmp_path / "a.tiff", pixels, 0.25, levels=())) as slide:
        check_every_tile(slide, 512)


def test_with_bounds(tmp_path: Path) -> None:
    pixels = squares(COLUMNS, ROWS, 256, GLASS)
    with SlideImage(write_bounded(tmp_path / "a.scn", pixels, (1237, 411))) as slide:
        check_every_tile(slide, 256, (1237, 411))


def test_without_a_resolution(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "a.tiff", squares(COLUMNS, ROWS, 256, GLASS), mpp=None)
    with SlideImage(path) as slide, pytest.raises(SlideError, match="resolution"):
        lay_tiles(slide, TilingSettings())
    with SlideImage(path, mpp=0.5) as slide:
        check_every_tile(slide, 256)


def test_tiles_at_a_resolution_between_levels(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "a.tiff", squares(4, 4, 200), mpp=0.4)
    with SlideImage(path) as slide:
        grid = lay_tiles(slide, TilingSettings(tile=160, mpp=0.5))
        assert grid.side == 200
        shades = squares(4, 4, 1)
        for (x, y), picture in zip(grid.coords, tile_pictures(slide, grid), strict=True):
            assert picture.shape == (160, 160, 3)
            assert (picture == shades[y // 200, x // 200]).all()


def test_a_slide_coarser_than_asked_for_is_refused(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "a.tiff", squares(2, 2, 256), mpp=1.0)
    with SlideImage(path) as slide, pytest.raises(SlideError, match="1 um per pixel, coarser"):
        lay_tiles(slide, TilingSettings())


def test_glass_is_no_tissue(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "a.tiff", np.full((600, 600, 3), 245, dtype=np.uint8))
    with SlideImage(path) as slide, pytest.raises(SlideError, match="holds no tissue"):
        lay_tiles(slide, TilingSettings())


def test_a_slide_smaller_than_a_tile_has_none(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "a.tiff", squares(1, 1, 100), levels=())
    with SlideImage(path) as slide, pytest.raises(SlideError, match="holds no tissue"):
        lay_tiles(slide, TilingSettings())


def test_a_third_of_tissue_is_enough_and_a_tenth_is_not(tmp_path: Path) -> None:
    pixels = np.full((256, 512, 3), 245, dtype=np.uint8)
    pixels[:, 168:256] = (200, 90, 160)
    pixels[:, 486:] = (200, 90, 160)
    with SlideImage(write_slide(tmp_path / "a.tiff", pixels)) as slide:
        assert lay_tiles(slide, TilingSettings()).coords.tolist() == [[0, 0]]
