"""foci doctor --slides: slides of all bags, tiles inside them, tiles of one size."""

from pathlib import Path

import pytest

from foci.bags.cohort import CohortOptions
from foci.bags.doctor import Check
from foci.slides.checks import check_slides
from tests.makers.features import features, grid, trident
from tests.makers.slides import squares, write_slide


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two bags of 12 tiles on slides of 4 x 3 tiles, one scanned at 40x."""
    for name, size in (("a", 256), ("b", 512)):
        coords = grid(12, step=size, origin=(0, 0))
        trident(tmp_path / "bags" / f"{name}.h5", features(), coords, size)
        write_slide(tmp_path / "slides" / f"{name}.tiff", squares(4, 3, size), 128 / size)
    return tmp_path


def checks(folder: Path, **options: object) -> dict[str, Check]:
    given = CohortOptions(features=folder / "bags", **options)  # type: ignore[arg-type]
    return {check.name: check for check in check_slides(given, folder / "slides")}


def test_all_is_well(folder: Path) -> None:
    found = checks(folder)
    assert {check.status for check in found.values()} == {"PASS"}
    assert found["slides"].detail == "every one of 2 bags has a slide"
    assert found["tile size"].detail == "tiles are 128 um wide on every slide"


def test_the_table_is_read_as_by_the_other_checks(folder: Path) -> None:
    """With columns of numbers, and without the classes that are left out."""
    table = folder / "labels.csv"
    table.write_text("slide_id,case_id,days,died\na,p,3,1\nb,q,4,0\n")
    found = checks(folder, labels=table, time="days", event="died")["slides"]
    assert (found.status, found.detail) == ("PASS", "every one of 2 bags has a slide")
    table.write_text("slide_id,case_id,label\na,p,x\nb,q,y\n")
    found = checks(folder, labels=table, exclude_class=("y",))["slides"]
    assert found.detail == "every one of 1 bags has a slide"


def test_a_bag_without_a_slide(folder: Path) -> None:
    (folder / "slides" / "b.tiff").unlink()
    found = checks(folder)["slides"]
    assert (found.status, found.detail) == (
        "WARN",
        "no slide for 1 slide (b); first: no image of this name",
    )
    assert "slide_path" in found.fix
    (folder / "slides" / "a.tiff").rename(folder / "slides" / "other.tiff")
    assert checks(folder)["slides"].status == "FAIL"
    (folder / "slides" / "other.tiff").unlink()
    assert checks(folder)["slides"].status == "FAIL"


@pytest.mark.parametrize(
    ("side", "mpp", "name", "status", "says"),
    [
        (256, 0.25, "tiles on slides", "FAIL",
         "outside in 1 slide (b); first: 10 of 12 tiles, up to 2048 x 1536 on 1024 x 768"),
        (512, 0.5, "tile size", "FAIL",
         "differs in 2 slides (a, b); first: 128 um instead of 192; extract all slides at one "),
        (512, None, "tile size", "WARN", "128 um; resolution unknown of 1 slide (b); give --mpp"),
        (0, None, "slide files", "FAIL", "1 of 2 cannot be read; first: "),
    ],
)  # fmt: skip
def test_a_slide_that_does_not_fit(
    folder: Path, side: int, mpp: float | None, name: str, status: str, says: str
) -> None:
    path = folder / "slides" / "b.tiff"
    write_slide(path, squares(4, 3, side), mpp) if side else path.write_text("a text")
    found = checks(folder)[name]
    assert found.status == status
    assert says in f"{found.detail}; {found.fix}"
    if side and mpp is None:
        assert checks(folder, mpp=0.25)[name].status == "PASS"
