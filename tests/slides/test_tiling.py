"""Tiles and tissue lie where they should, to the pixel.

Every square of a slide has its own colour; the mask is compared with scikit-image's.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from foci.errors import SlideError
from foci.slides.image import SlideImage
from foci.slides.tiling import TilingSettings, lay_tiles, otsu_threshold, stained, tile_pictures
from tests.makers.slides import Pixels, squares, write_bounded, write_slide

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
    for (column, row), picture in zip(cells, tile_pictures(slide, grid), strict=True):
        assert picture.shape == (256, 256, 3)
        assert (picture == shades[row, column]).all()


@pytest.mark.parametrize(
    ("mpp", "side", "levels"),
    [(0.5, 256, (4,)), (0.25, 512, (4,)), (0.2525, 512, (4,)), (0.499, 256, (4,)), (0.25, 512, ())],
)
def test_at_20x_and_40x_with_and_without_levels(
    tmp_path: Path, mpp: float, side: int, levels: tuple[int, ...]
) -> None:
    pixels = squares(COLUMNS, ROWS, side, GLASS)
    with SlideImage(write_slide(tmp_path / "a.tiff", pixels, mpp, levels)) as slide:
        check_every_tile(slide, side)


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


@pytest.mark.parametrize(
    ("pixels", "mpp", "message"),
    [
        (squares(2, 2, 256), 1.0, "1 um per pixel, coarser"),
        (np.full((600, 600, 3), 245, dtype=np.uint8), 0.5, "holds no tissue"),
        (squares(1, 1, 100), 0.5, "holds no tissue"),
    ],
    ids=["coarser than asked for", "glass", "smaller than a tile"],
)
def test_a_slide_without_tiles_is_refused(
    tmp_path: Path, pixels: Pixels, mpp: float, message: str
) -> None:
    path = write_slide(tmp_path / "a.tiff", pixels, mpp)
    with SlideImage(path) as slide, pytest.raises(SlideError, match=message):
        lay_tiles(slide, TilingSettings())


def test_a_third_of_tissue_is_enough_and_a_tenth_is_not(tmp_path: Path) -> None:
    pixels = np.full((256, 512, 3), 245, dtype=np.uint8)
    pixels[:, 168:256] = (200, 90, 160)
    pixels[:, 486:] = (200, 90, 160)
    with SlideImage(write_slide(tmp_path / "a.tiff", pixels)) as slide:
        assert lay_tiles(slide, TilingSettings()).coords.tolist() == [[0, 0]]


def variance_between(values: np.ndarray, threshold: int) -> float:
    low, high = values[values <= threshold], values[values > threshold]
    return float(len(low) * len(high) * (low.mean() - high.mean()) ** 2)


@pytest.mark.parametrize("seed", range(5))
def test_otsu_separates_best(seed: int) -> None:
    draw = np.random.default_rng(seed)
    values = np.concatenate([draw.normal(20, 6, 900), draw.normal(60 + 10 * seed, 12, 300)])
    values = values.clip(0, 255).astype(np.uint8)
    candidates = range(int(values.min()), int(values.max()))
    best = max(candidates, key=lambda one: variance_between(values, one))
    assert otsu_threshold(values) == best


def test_one_shade_has_no_threshold() -> None:
    assert otsu_threshold(np.full((4, 4), 77, dtype=np.uint8)) == 0


def test_the_mask_is_the_one_that_scikit_image_gives() -> None:
    # counts and hash are of median, threshold_otsu, closing and opening of scikit-image 0.26.0
    y, x = np.mgrid[:61, :83]
    shape = np.sin(x / 5) + np.cos(y / 7) > 0
    noise = (x * 7919 + y * 104729 + x * y * 31) % 23 - 11
    shades = np.where(shape[..., None], [200, 180, 196], [236, 232, 235]) + noise[..., None] * [
        1, -1, 0,
    ]  # fmt: skip
    mask = stained(Image.fromarray(shades.clip(0, 255).astype(np.uint8)))
    assert (mask.shape, mask.dtype) == ((61, 83), np.bool_)
    assert int(mask.sum()) == 3128
    assert hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()[:16] == "c20c9be7c1804ab3"
