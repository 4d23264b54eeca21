"""Slides are found by path, by name, and without TCGA's UUID; their thumbnails are small."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from foci.errors import SlideError
from foci.slides.find import (
    LONGEST,
    every_image,
    find_images,
    match_images,
    read_thumbnails,
    write_thumbnails,
)
from foci.slides.image import Box
from tests.makers.slides import squares, write_bounded

UUID = "D4FF32CD-38CF-40EA-8213-45C2B100AC01"
TCGA = "TCGA-05-4244-01Z-00-DX1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (f"sub/{TCGA}.{UUID}.svs", "b.NDPI", "c.tiff", "notes.txt", ".hidden.svs"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_names_with_and_without_the_uuid(folder: Path) -> None:
    images = find_images(folder)
    assert set(images) == {f"{TCGA}.{UUID}", "b", "c"}
    elsewhere = folder / "elsewhere.svs"
    found = match_images(
        [(TCGA, None), (f"{TCGA}.{UUID}", None), ("b.ndpi", None), ("c", elsewhere), ("d", None)],
        images,
    )
    assert [(one.path.name, one.how) for one in found.found] == [
        (f"{TCGA}.{UUID}.svs", "short name"),
        (f"{TCGA}.{UUID}.svs", "name"),
        ("b.NDPI", "short name"),
        ("elsewhere.svs", "slide_path"),
    ]
    assert [(one.slide_id, one.reason) for one in found.missing] == [("d", "no image of this name")]


def test_two_images_of_one_name_are_refused_both(folder: Path) -> None:
    (folder / "sub" / "c.svs").touch()
    found = every_image(folder)
    assert [one.slide_id for one in found.found] == ["b", f"{TCGA}.{UUID}"]
    (lost,) = found.missing
    assert lost.slide_id == "c"
    assert "fits several images" in lost.reason


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SlideError, match="holds no whole-slide images"):
        find_images(tmp_path)
    with pytest.raises(SlideError, match="does not exist"):
        find_images(tmp_path / "none")


def test_a_thumbnail_covers_the_scanned_part(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slides = tmp_path / "slides"
    slides.mkdir()
    write_bounded(slides / "a.scn", squares(4, 3, 256), (1000, 700))
    (slides / "bad.svs").write_text("a text")
    search = match_images([("a", None), ("bad", None), ("c", None)], find_images(slides))
    made = write_thumbnails(search, tmp_path)
    assert read_thumbnails(tmp_path) == made
    assert list(made) == ["a"]
    assert made["a"].box == Box(1000, 700, 1024, 768)
    assert made["a"].how == "name"
    assert [line.split(":")[0] for line in caplog.messages] == [
        "no picture of c",
        "no picture of bad",
    ]
    with Image.open(tmp_path / "thumbnails" / made["a"].file) as picture:
        assert picture.size == (LONGEST, LONGEST * 3 // 4)
        pixels = np.asarray(picture).astype(int)
    shades = squares(4, 3, 1)
    for row in range(3):
        for column in range(4):
            seen = pixels[row * 128 + 64, column * 128 + 64]
            assert np.abs(seen - shades[row, column]).max() < 12, "JPEG"


def test_no_thumbnails_or_a_damaged_index(tmp_path: Path) -> None:
    assert read_thumbnails(tmp_path) == {}
    (tmp_path / "thumbnails").mkdir()
    (tmp_path / "thumbnails" / "index.json").write_text("{")
    assert read_thumbnails(tmp_path) == {}
