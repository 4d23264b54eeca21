"""FOCI's own table and CLAM's dataset CSV."""

from pathlib import Path

import pytest

from foci.bags.bag import Slide, SlideRows
from foci.bags.importers import read_slides
from foci.errors import CohortError


def read(folder: Path, text: str, **options: str) -> SlideRows:
    path = folder / "labels.csv"
    path.write_text(text)
    return read_slides(path, label_column=options.get("label_column"))


def test_clam_dataset(tmp_path: Path) -> None:
    got = read(tmp_path, "case_id,slide_id,label\np1,007,tumor\np1,008,normal\n")
    assert got.slides == (Slide("007", "p1", "tumor"), Slide("008", "p1", "normal"))
    assert got.notes == ()


def test_all_columns_and_paths_relative_to_the_table(tmp_path: Path) -> None:
    text = (
        "slide_id,case_id,label,split,site,slide_path,feature_path\n"
        "a,p,x,Training,karolinska,wsi/a.svs,/data/a.h5\n"
        "b,q,y,,,,\n"
    )
    first, second = read(tmp_path, text).slides
    assert first == Slide(
        "a", "p", "x", "train", "karolinska", tmp_path / "wsi" / "a.svs", Path("/data/a.h5")
    )
    assert second == Slide("b", "q", "y")


def test_patients_are_derived_and_noted(tmp_path: Path) -> None:
    text = "slide_id,label\nTCGA-05-4244-01Z-00-DX1,x\nTCGA-05-4244-01Z-00-DX2,x\nmine,y\n"
    got = read(tmp_path, text)
    assert [s.case_id for s in got.slides] == ["TCGA-05-4244", "TCGA-05-4244", "mine"]
    assert got.notes == (
        "the table names no patients: 2 slides take the patient of their TCGA barcode; 1 slides "
        "count as one patient each, so that a patient in two splits would go unnoticed",
    )


def test_an_empty_label_is_none_and_noted(tmp_path: Path) -> None:
    got = read(tmp_path, "slide_id,case_id,grade\na,p,3\nb,q,\n", label_column="grade")
    assert got.slides == (Slide("a", "p", "3"), Slide("b", "q", None))
    assert got.notes == ("no grade for 1 slide (b)",)


def test_label_column(tmp_path: Path) -> None:
    text = "slide_id,case_id,oncotree\na,p,LUAD\n"
    assert read(tmp_path, text, label_column="oncotree").slides == (Slide("a", "p", "LUAD"),)
    with pytest.raises(
        CohortError,
        match=r"no column 'label' .*slide_id, case_id, oncotree.*or name .* with --label-column$",
    ):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            "a,p,x,\nb,q,y,\na,r,x,\n",
            "line 4: slide 'a' is already in line 2; keep one of the rows",
        ),
        ("a,p,x,\n,q,y,\n", "line 3: the cell 'slide_id' is empty; fill it or delete the row"),
        ("a,,x,\n", "line 2: the cell 'case_id' is empty"),
        ("a,p,x,holdout\n", "line 2: split 'holdout' is not train, val or test; write train"),
        ("a,p,x,Eval\n", "line 2: split 'eval' may mean validation or test; write train"),
    ],
)
def test_bad_rows_are_refused_with_their_line(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(CohortError, match=r"labels\.csv, " + message):
        read(tmp_path, "slide_id,case_id,label,split\n" + rows)


@pytest.mark.parametrize(
    ("word", "split"),
    [
        ("train", "train"),
        ("training", "train"),
        ("val", "val"),
        ("VALID", "val"),
        ("validation", "val"),
        ("tune", "val"),
        ("dev", "val"),
        ("test", "test"),
        ("Testing", "test"),
    ],
)
def test_words_for_splits(tmp_path: Path, word: str, split: str) -> None:
    (slide,) = read(tmp_path, f"slide_id,case_id,label,split\na,p,x,{word}\n").slides
    assert slide.split == split
