"""Names of slides: TCGA barcodes, feature files in folders, rows and their files."""

from pathlib import Path

import numpy as np
import pytest

from foci.bags import Slide
from foci.bags.matching import Barcode, case_of, find_features, match, parse_barcode, without_uuid
from foci.bags.tasks import diagnostic_barcode
from foci.errors import BagError, CohortError
from tests.makers import features as write
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


# Barcodes of TCGA.


@pytest.mark.parametrize(
    ("name", "parts", "no"),
    [
        (f"TCGA-2L-AAQA-01Z-00-DX1.{UUID.upper()}.svs", ("2L", "01", "DX1"), None),
        ("TCGA-05-4244-11A-01-TS1", ("05", "11", "TS1"), "frozen sections"),
        ("TCGA-05-4244-11A-01-MSA", ("05", "11", "MSA"), "frozen sections"),
        ("TCGA-05-4244-11A-01-BS2", ("05", "11", "BS2"), "frozen sections"),
        ("TCGA-05-4244-11A-01-DX1", ("05", "11", "DX1"), "slides of normal tissue"),
        ("TCGA-05-4244", ("05", None, None), "files without the barcode of a slide"),
        ("TCGA-05-4244-01", ("05", "01", None), "files without the barcode of a slide"),
    ],
)
def test_barcodes(name: str, parts: tuple[str, str | None, str | None], no: str | None) -> None:
    assert parse_barcode(name) == Barcode(name[:12], *parts)
    assert diagnostic_barcode(name) == (no or parse_barcode(name))


def test_both_cases_are_one_patient() -> None:
    assert case_of("tcga-05-4244-01z-00-dx1") == case_of("TCGA-05-4244-01Z-00-DX2")


@pytest.mark.parametrize("name", ["TCGA-05-42445", "TCGA-5-4244", "xTCGA-05-4244", "C3L-00001-21"])
def test_other_names_are_no_barcodes(name: str) -> None:
    assert parse_barcode(name) is None
    assert case_of(name) == name


@pytest.mark.parametrize("uuid", [UUID.lower(), UUID])
def test_uuid_is_cut_off_a_tcga_name_only(uuid: str) -> None:
    assert without_uuid(f"TCGA-05-4244-01Z-00-DX1.{uuid}") == "TCGA-05-4244-01Z-00-DX1"
    assert without_uuid(f"biopsy-7.{uuid}") == f"biopsy-7.{uuid}"


@pytest.mark.parametrize("ending", ["", ".svs", f".{UUID}.svs", f"-{UUID}", f".{UUID[:-1]}"])
def test_anything_else_behind_a_barcode_stays(ending: str) -> None:
    name = f"TCGA-05-4244-01Z-00-DX1{ending}"
    assert without_uuid(name) == name


# Finding feature files in the folders that tools leave behind.


X = write.features()
XY = write.grid()


def test_clam_results_folder_prefers_h5_and_skips_patches(tmp_path: Path) -> None:
    write.clam_h5(tmp_path, "a", X, XY)
    write.clam_pt(tmp_path, "a", X)
    write.clam_pt(tmp_path, "b", X)
    found = find_features(tmp_path)
    assert {name: path.suffix for name, path in found.items()} == {"a": ".h5", "b": ".pt"}


def test_trident_and_slideflow_sidecars_are_not_slides(tmp_path: Path) -> None:
    write.trident(tmp_path / "20x" / "features_uni" / "t.h5", X, XY)
    write.trident(tmp_path / "20x" / "patches" / "t_patches.h5", X, XY)
    write.slideflow(tmp_path / "s.pt", X, XY)
    (tmp_path / ".writing-x.h5").touch()
    assert sorted(find_features(tmp_path)) == ["s", "t"]


def test_dots_in_slide_names_survive(tmp_path: Path) -> None:
    write.uni2h(tmp_path / f"TCGA-05-4244-01Z-00-DX1.{write.UUID}.h5", X, XY)
    assert list(find_features(tmp_path)) == [f"TCGA-05-4244-01Z-00-DX1.{write.UUID}"]


def test_two_encoders_in_one_folder_are_refused(tmp_path: Path) -> None:
    write.trident(tmp_path / "features_uni" / "t.h5", X, XY)
    write.trident(tmp_path / "features_conch" / "t.h5", X, XY)
    with pytest.raises(BagError, match=r"slide 't' is also in .*one encoder"):
        find_features(tmp_path)


def test_a_link_that_leads_back_up_is_followed_once(tmp_path: Path) -> None:
    write.trident(tmp_path / "a" / "t.h5", X, XY)
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert list(find_features(tmp_path)) == ["t"]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(BagError, match=r"gone: does not exist; give the folder"):
        find_features(tmp_path / "gone")
    np.savetxt(tmp_path / "notes.txt", X)
    with pytest.raises(BagError, match=r"holds no feature files \(\.h5"):
        find_features(tmp_path)
    with pytest.raises(BagError, match=r"notes\.txt: is not a folder"):
        find_features(tmp_path / "notes.txt")
