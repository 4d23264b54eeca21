"""Recognising a label table by its header."""

from pathlib import Path

import pytest

from foci.bags.importers import IMPORTERS, read_slides
from foci.errors import CohortError


def table(folder: Path, header: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_text(header + "\n" + ",".join("1" for _ in header.split(",")) + "\n")
    return path


def test_unknown_columns_name_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(CohortError) as caught:
        read_slides(table(tmp_path, "image,class"))
    message = str(caught.value)
    assert "a.csv: is of no known format (columns: image, class); expected is one of: " in message
    assert len(IMPORTERS) == 4
    for name in IMPORTERS:
        assert IMPORTERS[name].description in message


@pytest.mark.parametrize(
    ("header", "column", "key"),
    [
        ("Slide_ID,case_id,label", "Slide_ID", "slide_id"),
        ("label,SLIDE ID", "SLIDE ID", "slide_id"),
        ("slide,label", "slide", "slide_id"),
        ("Patient,KRAS", "Patient", "PATIENT"),
        ("Bag_Name,split", "Bag_Name", "bag_name"),
    ],
)
def test_a_misspelt_column_is_named(tmp_path: Path, header: str, column: str, key: str) -> None:
    with pytest.raises(CohortError) as caught:
        read_slides(table(tmp_path, header))
    assert f"a.csv: has no column '{key}' (columns: " in str(caught.value)
    assert str(caught.value).endswith(f"; did you mean '{column}'? rename it to '{key}'")


@pytest.mark.parametrize("header", ["case_id,label", "patient_id,label"])
def test_another_column_is_no_misspelling(tmp_path: Path, header: str) -> None:
    with pytest.raises(CohortError, match="is of no known format"):
        read_slides(table(tmp_path, header))


def test_tables_in_the_wrong_place(tmp_path: Path) -> None:
    with pytest.raises(
        CohortError, match=r"is a split table, not labels .* and this one as --splits"
    ):
        read_slides(table(tmp_path, "train,val,test"))
    with pytest.raises(
        CohortError, match=r"is a slide table, not labels .* this one as --slide-table"
    ):
        read_slides(table(tmp_path, "PATIENT,FILENAME"))


def test_options_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    tidy = table(tmp_path, "slide_id,label")
    message = "^--fold 0: means nothing for .*a.csv, a table of the format 'tidy'; leave it out"
    with pytest.raises(CohortError, match=message):
        read_slides(tidy, fold=0)
    with pytest.raises(CohortError, match=r"^--slide-table .*: means nothing"):
        read_slides(tidy, slide_table=tidy)
    with pytest.raises(CohortError, match=r"^--label-column x: means nothing .*'torchmil'"):
        read_slides(table(tmp_path, "bag_name,split"), label_column="x")


def test_notes_of_both_tables_are_kept(tmp_path: Path) -> None:
    labels = table(tmp_path, "slide_id,label")
    labels.write_text("slide_id,label\na,x\nb,y\n")
    splits = table(tmp_path, "train", "splits.csv")
    splits.write_text("train\na\n")
    got = read_slides(labels, splits=splits)
    assert [note.split(":")[0] for note in got.notes] == [
        "the table names no patients",
        "1 slides of the label table are in no split of splits.csv",
    ]
