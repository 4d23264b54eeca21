"""JPEG pictures hold the slide's pixels, once each; broken files cost only themselves."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from foci.errors import SlideError
from foci.slides.image import Box
from foci.viewer import pictures as module
from foci.viewer.pictures import CROP, SIDE, OpenImages, Pictures, Pyramid
from tests.makers.slides import squares, write_bounded, write_slide
from tests.viewer import conftest

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


GRID = (conftest.COLUMNS, conftest.ROWS, conftest.SIDE)


def pixels(jpeg: bytes | None) -> NDArray[np.uint8]:
    assert jpeg is not None
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))


def whole(pictures: Pictures, path: Path, level: int, box: Box) -> NDArray[np.float64]:
    down = 2 ** (Pyramid(box).finest - level)
    rows = [
        np.concatenate(
            [
                pixels(pictures.part(path, level, column, row))
                for column in range(-(-box.width // (SIDE * down)))
            ],
            axis=1,
        )
        for row in range(-(-box.height // (SIDE * down)))
    ]
    return np.concatenate(rows).astype(float)


def test_levels_are_the_slide_at_their_resolution(image: Path) -> None:
    truth = squares(*GRID)
    height, width = truth.shape[:2]
    box = Box(0, 0, width, height)
    shown = whole(Pictures(OpenImages()), image, Pyramid(box).finest, box)
    assert shown.shape == truth.shape
    inside = np.abs(shown - truth)[8::32, 8::32]  # away from edges, where JPEG is exact enough
    assert inside.mean() < 3
    # a coarse level is the slide made small
    shown = whole(Pictures(OpenImages()), image, Pyramid(box).finest - 2, box)
    assert shown.shape == (-(-height // 4), -(-width // 4), 3)
    assert np.abs(shown[2::8, 2::8] - truth[8::32, 8::32]).mean() < 12


def test_pictures_begin_at_the_scanned_part(tmp_path: Path) -> None:
    truth = squares(4, 3, 256)
    path = write_bounded(tmp_path / "s.scn", truth, (1000, 700))
    pictures = Pictures(OpenImages())
    box = pictures.images.get(path).bounds
    assert box[:2] == (1000, 700)
    shown = pixels(pictures.part(path, Pyramid(box).finest, 0, 0))
    assert np.abs(shown[8::32, 8::32].astype(float) - truth[8:512:32, 8:512:32]).mean() < 4


def test_a_crop_is_its_tile(image: Path) -> None:
    truth = squares(*GRID)
    shown = pixels(Pictures(OpenImages()).crop(image, 5 * 32, 3 * 32, 32))
    assert shown.shape == (CROP, CROP, 3)
    assert (
        np.abs(shown[CROP // 2, CROP // 2].astype(float) - truth[3 * 32 + 8, 5 * 32 + 8]).max() < 6
    )


def test_pictures_are_read_once(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = Pictures(OpenImages())
    reads: list[bytes] = []
    encoded = module._encoded

    def counting(picture: Image.Image) -> bytes:
        reads.append(encoded(picture))
        return reads[-1]

    monkeypatch.setattr(module, "_encoded", counting)
    first = pictures.part(image, 11, 0, 0)
    assert pictures.part(image, 11, 0, 0) == first
    assert len(reads) == 1
    small = Pictures(OpenImages(), cache_bytes=len(first or b"") + 10)
    small.part(image, 11, 0, 0)
    small.part(image, 11, 1, 0)
    small.part(image, 11, 0, 0)
    assert len(reads) == 4


def test_a_slide_cut_short_is_an_error_and_works_again_once_it_is_whole(
    images: dict[str, Path],
) -> None:
    path = next(iter(images.values()))
    content = path.read_bytes()
    pictures = Pictures(OpenImages())
    assert pictures.part(path, 9, 0, 0)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(SlideError, match=r"cut short"):
        for column in range(4):
            for row in range(3):
                pictures.part(path, 11, column, row)
    path.write_bytes(content)
    assert pictures.part(path, 11, 3, 2)


def test_a_slide_that_vanishes_is_an_error_although_it_was_open(images: dict[str, Path]) -> None:
    path, other, _ = images.values()
    pictures = Pictures(OpenImages())
    assert pictures.part(path, 9, 0, 0)
    path.unlink()
    with pytest.raises(SlideError, match=r"has vanished; bring it back, then reload the page"):
        pictures.part(path, 9, 0, 0)
    assert pictures.part(other, 9, 0, 0)


def test_only_so_many_images_stay_open(images: dict[str, Path]) -> None:
    opened = OpenImages(most=2)
    first, second, third = (opened.get(path) for path in images.values())
    assert len(opened) == 2
    paths = list(images.values())
    assert opened.get(paths[1]) is second
    assert opened.get(paths[2]) is third
    assert opened.get(paths[0]) is not first
    assert first.read(Box(0, 0, 8, 8), (8, 8)), "a reader may finish with an image that was dropped"


def test_an_image_that_was_replaced_is_opened_again(images: dict[str, Path]) -> None:
    path = next(iter(images.values()))
    opened = OpenImages()
    before = opened.get(path)
    os.utime(path, (1, 1))
    assert opened.get(path) is not before
    assert opened.get(path) is opened.get(path)


def test_the_resolution_can_be_given(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "s.tif", squares(4, 4, 64), mpp=None)
    assert OpenImages().get(path).mpp is None
    assert OpenImages(slide_mpp=0.25).get(path).mpp == 0.25
