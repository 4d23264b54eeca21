"""Slides are found by path, by name, and without TCGA's UUID."""

from pathlib import Path

import pytest

from foci.errors import SlideError
from foci.slides.find import every_image, find_images, match_images

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
