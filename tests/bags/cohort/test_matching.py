"""Rows of a table find their feature files."""

from pathlib import Path

import pytest

from foci.bags import Slide
from foci.bags.matching import match
from foci.errors import CohortError
from tests.makers.features import UUID

BARE = "TCGA-05-4244-01Z-00-DX1"
FULL = f"{BARE}.{UUID}"


def files(*names: str) -> dict[str, Path]:
    return {name: Path(f"{name}.h5") for name in names}


def slide(name: str) -> Slide:
    return Slide(name, "case")


@pytest.mark.parametrize(
    "row", [BARE, FULL, f"{FULL}.svs", f"{BARE}.svs", f"{BARE}.{UUID.lower()}"]
)
@pytest.mark.parametrize("file", [BARE, FULL])
def test_tcga_names_match_with_and_without_uuid(row: str, file: str) -> None:
    matched = match([slide(row)], files(file))
    assert matched.slides[0].feature_path == Path(f"{file}.h5")
    assert (matched.missing, matched.unused) == ((), ())


def test_exact_name_wins_over_a_shortened_one() -> None:
    matched = match([slide(FULL)], files(FULL, BARE))
    assert matched.slides[0].feature_path == Path(f"{FULL}.h5")
    assert matched.unused == (BARE,)


def test_leading_zeros_matter() -> None:
    matched = match([slide("007"), slide("7")], files("007"))
    assert [s.slide_id for s in matched.slides] == ["007"]
    assert [s.slide_id for s in matched.missing] == ["7"]


def test_ambiguous_and_double_claims_are_refused() -> None:
    with pytest.raises(CohortError, match=f"{BARE}: fits several feature files"):
        match(
            [slide(BARE)], files(FULL, f"{BARE}.{UUID[::-1]}"[:-1] + "0", f"{BARE}.{UUID.lower()}")
        )
    with pytest.raises(CohortError, match=r"belongs to two rows .*keep one of them"):
        match([slide(BARE), slide(f"{BARE}.svs")], files(BARE))


def on_disk(folder: Path, *names: str) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: folder / f"{name}.h5" for name in names}
    for path in found.values():
        path.touch()
    return found


def test_a_path_in_the_table_is_taken_as_it_is(tmp_path: Path) -> None:
    there = on_disk(tmp_path / "there", "a", "b")
    given = Slide("a", "c", feature_path=tmp_path / "there" / ".." / "there" / "a.h5")
    linked = Slide("b", "c", feature_path=tmp_path / "link" / "b.h5")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    matched = match([given, linked], {**there, "z": Path("z.h5")})
    assert matched.slides == (given, linked)
    assert matched.unused == ("z",)
    elsewhere = Slide("k", "c", feature_path=there["a"])
    assert match([elsewhere], files("z")).slides == (elsewhere,)


def test_another_file_in_the_folder_is_an_ambiguity(tmp_path: Path) -> None:
    table, folder = on_disk(tmp_path / "uni", FULL)[FULL], on_disk(tmp_path / "gigapath", BARE)
    message = rf"^{FULL}: has two feature files: .*gigapath.{BARE}\.h5 .*uni.{FULL}\.h5 as its "
    with pytest.raises(CohortError, match=message + r"feature_path; correct or empty"):
        match([Slide(FULL, "c", feature_path=table)], folder)


def test_the_two_files_of_clam_are_one_bag(tmp_path: Path) -> None:
    h5 = on_disk(tmp_path / "h5_files", "a")
    on_disk(tmp_path / "pt_files", "a")
    tensor = Slide("a", "c", feature_path=tmp_path / "pt_files" / "a.h5")
    matched = match([tensor], h5)
    assert (matched.slides, matched.unused) == ((tensor,), ())
    with pytest.raises(CohortError, match="has two feature files"):
        match([tensor], on_disk(tmp_path / "other" / "h5_files", "a"))


def test_one_file_for_two_slides_is_refused(tmp_path: Path) -> None:
    there = on_disk(tmp_path / "there", "a")
    first = Slide("x", "c", feature_path=there["a"])
    second = Slide("y", "c", feature_path=tmp_path / "there" / ".." / "there" / "a.h5")
    for rows, names in (([first, second], "x, y"), ([first, slide("a")], "x, a")):
        message = rf"a\.h5: belongs to two rows of the label table \({names}\); keep one"
        with pytest.raises(CohortError, match=message):
            match(rows, there)


def test_a_path_that_leads_nowhere_is_a_missing_file(tmp_path: Path) -> None:
    lost = Slide("a", "c", feature_path=tmp_path / "nowhere" / "a.h5")
    matched = match([lost, slide("b")], on_disk(tmp_path, "a", "b"))
    assert [s.slide_id for s in matched.slides] == ["b"]
    assert [s.slide_id for s in matched.missing] == ["a"]
    assert matched.missing[0].reason == f"its feature_path {lost.feature_path} is no file"
    assert matched.unused == ()
