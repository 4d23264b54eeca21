"""Opening slides: resolution, bounds, levels, and files that are no slides."""

import os
from pathlib import Path

import numpy as np
import pytest

from foci.errors import SlideError
from foci.slides.find import find_images
from foci.slides.image import Box, SlideImage
from tests.makers.slides import squares, write_bounded, write_slide


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_slide(tmp_path_factory.mktemp("slides") / "a.tiff", squares(4, 3, 256))


def test_size_and_resolution_are_the_file_s(path: Path) -> None:
    with SlideImage(path, mpp=0.25) as slide:
        assert slide.size == (1024, 768)
        assert slide.bounds == Box(0, 0, 1024, 768)
        assert slide.mpp == pytest.approx(0.5)
        assert slide.mpp_from == "slide", "what is given does not replace what the file says"


def test_every_level_shows_the_same_place(path: Path) -> None:
    expected = squares(4, 3, 256)
    with SlideImage(path) as slide:
        for size in (512, 128, 64, 16):
            picture = np.asarray(slide.read(Box(256, 256, 512, 512), (size, size)))
            quarter = size // 4
            for row in range(2):
                for column in range(2):
                    at = (quarter + row * size // 2, quarter + column * size // 2)
                    place = 384 + 256 * row, 384 + 256 * column
                    assert np.abs(picture[at].astype(int) - expected[place]).max() <= 1


def test_a_large_region_of_one_level_is_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_slide(tmp_path / "a.tiff", squares(5, 3, 250), levels=())
    with SlideImage(path) as slide:
        whole = np.asarray(slide.read(slide.bounds, (125, 75))).astype(int)
        monkeypatch.setattr("foci.slides.image._MOST_AT_ONCE", 300)
        parts = np.asarray(slide.read(slide.bounds, (125, 75))).astype(int)
    inside = np.ones((75, 125), dtype=bool)
    inside[:, 24::25] = inside[:, ::25] = inside[24::25] = inside[::25] = False
    assert (whole[inside] == parts[inside]).all(), "but for rounding at the edges of squares"
    assert (parts[inside] == squares(5, 3, 25)[inside]).all()


def test_outside_the_scan_is_white(tmp_path: Path) -> None:
    path = write_bounded(tmp_path / "b.scn", squares(2, 2, 256), origin=(1000, 700))
    with SlideImage(path) as slide:
        assert slide.bounds == Box(1000, 700, 512, 512)
        assert slide.size == (2024, 1724)
        picture = np.asarray(slide.read(Box(744, 700, 512, 256), (512, 256)))
        assert (picture[:, :256] == 255).all()
        assert (picture[:, 256:] == squares(2, 2, 256)[0, 0]).all()


def test_a_missing_resolution_is_asked_for(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "a.tiff", squares(2, 2, 256), mpp=None)
    with SlideImage(path) as slide:
        assert slide.mpp is None
        with pytest.raises(SlideError, match=r"does not say its resolution; .*--slide-mpp"):
            slide.known_mpp()
    with SlideImage(path, mpp=0.5) as slide:
        assert slide.known_mpp() == 0.5
        assert slide.mpp_from == "given"


def test_a_resolution_that_no_scanner_has_is_none(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "a.tiff", squares(2, 2, 256), mpp=352.8)  # 72 dots per inch
    with SlideImage(path) as slide:
        assert slide.mpp is None


def test_what_is_no_slide_is_refused_in_one_line(tmp_path: Path) -> None:
    text = tmp_path / "text.svs"
    text.write_text("not a slide")
    with pytest.raises(SlideError, match=r"text\.svs: is no whole-slide image"):
        SlideImage(text)
    (tmp_path / "empty.svs").touch()
    with pytest.raises(SlideError, match="is empty"):
        SlideImage(tmp_path / "empty.svs")
    with pytest.raises(SlideError, match="no such file"):
        SlideImage(tmp_path / "none.svs")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.svs")
    (tmp_path / "zero.svs").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe.svs", tmp_path / "zero.svs"):
        with pytest.raises(SlideError, match=r"opened \(it is no file but a pipe or a device\)"):
            SlideImage(path)
        assert find_images(path) == {path.stem: [path]}


def test_after_an_error_every_read_is_refused(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "a.tiff", squares(4, 4, 256))
    with SlideImage(path) as slide:
        path.write_bytes(b"")
        for _ in range(2):  # the second time already the search for a level fails
            with pytest.raises(SlideError, match="is cut short or damaged"):
                slide.read(slide.bounds, (1024, 1024))
