"""STAMP's clinical and slide tables."""

from pathlib import Path

import pytest

from foci.bags.bag import Slide, SlideRows
from foci.bags.importers import read_slides
from foci.errors import CohortError
from tests.makers.workbooks import text_row, workbook

CLINI = "PATIENT,KRAS,AGE\np1,mut,61\np2,wt,55\np3,,70\np4,wt,40\n"
SLIDES = "PATIENT,FILENAME\np1,site/TCGA-a.1.h5\np1,b.h5\np2,sub\\c.H5\np9,d.h5\np3,e.h5\n"


def read(
    folder: Path, clini: str = CLINI, slides: str = SLIDES, label: str | None = "KRAS"
) -> SlideRows:
    (folder / "clini.csv").write_text(clini)
    (folder / "slides.csv").write_text(slides)
    return read_slides(folder / "clini.csv", slide_table=folder / "slides.csv", label_column=label)


def test_both_tables_are_joined_and_the_rest_is_reported(tmp_path: Path) -> None:
    got = read(tmp_path)
    assert got.slides == (
        Slide("TCGA-a.1", "p1", "mut"),
        Slide("b", "p1", "mut"),
        Slide("c", "p2", "wt"),
    )
    assert got.notes == (
        "1 patients have no slide and are left out (p4)",
        "1 slides belong to patients who are not in the clinical table and are left out (d)",
        "1 patients have no 'KRAS' and are left out (p3)",
    )


def test_long_lists_are_cut(tmp_path: Path) -> None:
    clini = "PATIENT,KRAS\np0,x\n" + "".join(f"q{k},y\n" for k in range(7))
    got = read(tmp_path, clini, "PATIENT,FILENAME\np0,a.h5\n", label=None)
    assert got.notes == ("7 patients have no slide and are left out (q0, q1, q2, q3, q4, ...)",)


def test_names_without_a_known_ending_stay_whole(tmp_path: Path) -> None:
    got = read(tmp_path, "PATIENT,KRAS\np,x\n", "PATIENT,FILENAME\np,a/TCGA.uuid-1\n", label=None)
    assert got.slides == (Slide("TCGA.uuid-1", "p", "x"),)


def test_excel_tables(tmp_path: Path) -> None:
    clini = workbook(tmp_path / "clini.xlsx", text_row(1, "PATIENT", "L") + text_row(2, "01", "x"))
    table = text_row(1, "PATIENT", "FILENAME") + text_row(2, "01", "a.h5")
    got = read_slides(clini, slide_table=workbook(tmp_path / "slides.xlsx", table))
    assert got.slides == (Slide("a", "01", "x"),)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match=r"clini.csv: has several columns .*\(KRAS, AGE\)"):
        read(tmp_path, label=None)
    with pytest.raises(
        CohortError, match=r"clini.csv: names patients but no slides; give the slid"
    ):
        read_slides(tmp_path / "clini.csv")
    with pytest.raises(CohortError, match="line 3: patient 'p1' is already in line 2"):
        read(tmp_path, "PATIENT,KRAS\np1,mut\np1,wt\n")
    with pytest.raises(CohortError, match=r"slides.csv, line 3: slide 'a' is already in line 2"):
        read(tmp_path, slides="PATIENT,FILENAME\np1,x/a.h5\np2,y/a.h5\n")
    with pytest.raises(CohortError, match=r"slides.csv: has no column 'FILENAME' .*'FILE_NAME'"):
        read(tmp_path, slides="PATIENT,FILE_NAME\np1,a.h5\n")
    with pytest.raises(CohortError, match=r"slides.csv, line 2: the cell 'PATIENT' is empty"):
        read(tmp_path, slides="PATIENT,FILENAME\n,a.h5\n")
    with pytest.raises(
        CohortError, match=r"no patient with a 'KRAS' has a slide in .*same patient"
    ):
        read(tmp_path, slides="PATIENT,FILENAME\nP1,a.h5\n")
