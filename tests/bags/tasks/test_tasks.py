"""What all tasks share: sources, repeats, sizes."""

from pathlib import Path

import pytest

from foci.bags.tasks import TASKS, Source, build, parse_source
from foci.errors import CohortError, FociError
from tests.bags.tasks.gdc_tables import barcode, sheet_of
from tests.bags.tasks.test_published import features


def test_sizes_of_the_paper() -> None:
    assert {name: (sum(TASKS[name].counts), TASKS[name].classes) for name in TASKS} == {
        "nsclc": (1043, ("LUAD", "LUSC")),
        "brca": (1126, ("IDC", "other")),
        "panda": (10_615, ("benign", "malignant")),
    }


def test_sources_with_and_without_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / "k=all.tsv"
    odd.touch()
    monkeypatch.chdir(tmp_path)
    classes = ("LUAD", "LUSC")
    assert parse_source(str(odd), classes) == Source(odd)
    assert parse_source("k=all.tsv", classes) == Source(Path("k=all.tsv"))
    assert parse_source("luad=k=all.tsv", classes) == Source(Path("k=all.tsv"), "LUAD")
    with pytest.raises(
        CohortError, match="'IDC' is not a class of this task; write one of LUAD=PA"
    ):
        parse_source(f"IDC={odd}", classes)
    with pytest.raises(CohortError, match=r"^none\.tsv: does not exist; give a file or folder"):
        parse_source("LUAD=none.tsv", classes)
    with pytest.raises(CohortError, match=r"^a=b: does not exist"):
        parse_source("a=b", classes)


def test_a_slide_given_twice_is_refused(tmp_path: Path) -> None:
    sheet = str(sheet_of(tmp_path / "luad.tsv", "TCGA-LUAD", [1]))
    other = str(sheet_of(tmp_path / "lusc.tsv", "TCGA-LUSC", [2]))
    message = f"slide {barcode(1)!r} is given twice; keep one of them"
    with pytest.raises(CohortError, match=message):
        build("nsclc", [sheet, other, sheet])
    folder = features(tmp_path / "TCGA-LUSC", barcode(1))
    with pytest.raises(CohortError, match=f"luad.tsv and .*TCGA-LUSC: {message}"):
        build("nsclc", [sheet, str(folder)])


def test_two_files_of_one_barcode_are_two_slides(tmp_path: Path) -> None:
    uuid = "d4ff32cd-38cf-40ea-8213-45c2b100ac01"
    names = [f"{barcode(1)}.{first}{uuid[1:]}" for first in "de"]
    luad = features(tmp_path / "TCGA-LUAD", *names)
    lusc = features(tmp_path / "TCGA-LUSC", barcode(2))
    got = build("nsclc", [str(luad), str(lusc)], split=False)
    assert [s.slide_id for s in got.slides] == [*names, barcode(2)]


def test_a_missing_class_is_refused(tmp_path: Path) -> None:
    sheet = sheet_of(tmp_path / "luad.tsv", "TCGA-LUAD", [1])
    with pytest.raises(
        CohortError, match="task nsclc: has no slides of LUSC; add the source of th"
    ):
        build("nsclc", [str(sheet)])
    with pytest.raises(CohortError, match="task nsclc: has no slides of LUAD and LUSC"):
        build("nsclc", [])


def test_the_seed_changes_the_split(tmp_path: Path) -> None:
    features(tmp_path / "TCGA-LUAD", *(barcode(k) for k in range(20)))
    features(tmp_path / "TCGA-LUSC", *(barcode(k) for k in range(20, 40)))
    runs = [build("nsclc", [str(tmp_path)], seed=seed).slides for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


def test_unknown_task() -> None:
    with pytest.raises(FociError, match="nslc: is not a known task; did you mean 'nsclc'"):
        build("nslc", [])
