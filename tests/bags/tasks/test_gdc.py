"""Sample sheets, old and new, and manifests."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from foci.bags.bag import Slide, SlideRows
from foci.bags.tasks import Source, read_tcga
from foci.errors import CohortError
from tests.bags.tasks.gdc_tables import NEW, OLD, barcode, file_name, manifest, sample_sheet

PROJECTS = {"TCGA-LUAD": "LUAD", "TCGA-LUSC": "LUSC"}


def read(source: Source) -> SlideRows:
    return read_tcga(source, {}, PROJECTS, "write LUAD=PATH")


@pytest.mark.parametrize("columns", [OLD, NEW])
@pytest.mark.parametrize("upper", [True, False])
def test_sample_sheet_of_both_generations(
    tmp_path: Path, columns: Sequence[str], upper: bool
) -> None:
    one, two = file_name(barcode(1), upper), file_name(barcode(2, site="2L"), upper)
    files = [
        (one, "TCGA-LUAD", "TCGA-05-0001"),
        (two, "TCGA-LUSC, TCGA-LUSC", "TCGA-2L-0002, TCGA-2L-0002"),
    ]
    path = sample_sheet(tmp_path / "gdc_sample_sheet.2025-08-01.tsv", files, columns)
    got = read(Source(path))
    assert got.slides == (
        Slide(one.removesuffix(".svs"), "TCGA-05-0001", "LUAD", site="05"),
        Slide(two.removesuffix(".svs"), "TCGA-2L-0002", "LUSC", site="2L"),
    )
    assert got.notes == ()


def test_everything_that_is_left_out_is_counted(tmp_path: Path) -> None:
    names = [
        (file_name(barcode(1)), "TCGA-LUAD"),
        (file_name(barcode(1, "01A-01-TS1")), "TCGA-LUAD"),
        (file_name(barcode(2, "01A-01-BSA")), "TCGA-LUAD"),
        (file_name(barcode(3, "11A-01-DX1")), "TCGA-LUAD"),
        ("report.PDF", "TCGA-LUAD"),
        ("C3L-00001-21.svs", "TCGA-LUAD"),
        (file_name(barcode(4)), "TCGA-BRCA"),
    ]
    path = sample_sheet(tmp_path / "s.tsv", [(name, p, name[:12]) for name, p in names])
    got = read(Source(path))
    assert [slide.case_id for slide in got.slides] == ["TCGA-05-0001"]
    assert got.notes == (
        "s.tsv: 1 files of the project TCGA-BRCA are left out",
        "s.tsv: 1 files that are no slides (.svs) are left out",
        "s.tsv: 1 files without the barcode of a slide are left out",
        "s.tsv: 2 frozen sections are left out",
        "s.tsv: 1 slides of normal tissue are left out",
    )


def test_manifest_needs_its_class(tmp_path: Path) -> None:
    names = [file_name(barcode(1)), file_name(barcode(1, "01A-01-TS1"))]
    path = manifest(tmp_path / "gdc_manifest.txt", names)
    got = read(Source(path, "LUSC"))
    assert [(s.case_id, s.label) for s in got.slides] == [("TCGA-05-0001", "LUSC")]
    assert got.notes == ("gdc_manifest.txt: 1 frozen sections are left out",)
    with pytest.raises(
        CohortError, match=r"manifest.txt: is a manifest, which names no project; wr"
    ):
        read(Source(path))


def test_a_label_against_the_project_is_refused(tmp_path: Path) -> None:
    files = [(file_name(barcode(1)), "TCGA-LUAD", "TCGA-05-0001")]
    path = sample_sheet(tmp_path / "s.tsv", files)
    assert read(Source(path, "LUAD")).slides[0].label == "LUAD"
    with pytest.raises(
        CohortError, match="line 2: is of the project TCGA-LUAD, but was given as L"
    ):
        read(Source(path, "LUSC"))


@pytest.mark.parametrize(
    ("project", "case", "message"),
    [
        ("TCGA-LUAD", "TCGA-05-0009", "line 2: Case ID TCGA-05-0009 does not fit TCGA-05-0001"),
        ("TCGA-LUAD, TCGA-LUSC", "TCGA-05-0001", "line 2: names 2 projects, not one; delete"),
        ("", "TCGA-05-0001", "line 2: names 0 projects, not one"),
        ("TCGA-GBM", "TCGA-05-0001", r"s.tsv: holds no diagnostic slides \(DX\) of TCGA-LUAD, TC"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, project: str, case: str, message: str) -> None:
    path = sample_sheet(tmp_path / "s.tsv", [(file_name(barcode(1)), project, case)])
    with pytest.raises(CohortError, match=message):
        read(Source(path))


def test_other_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("slide_id,label\na,b\n")
    message = (
        r"is no table of the GDC \(columns: slide_id, label\); give a sample sheet \(File Name"
    )
    with pytest.raises(CohortError, match=message):
        read(Source(tmp_path / "a.csv"))
