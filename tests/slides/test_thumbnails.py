"""Thumbnails in an audit folder: small, at a known place, none for a bad slide."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from foci.slides.find import find_images, match_images
from foci.slides.image import Box
from foci.slides.thumbnails import LONGEST, read_thumbnails, write_thumbnails
from tests.makers.slides import squares, write_bounded


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
