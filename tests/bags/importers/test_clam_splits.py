"""CLAM's split files, in all their forms."""

from pathlib import Path

import pytest

from foci.bags.bag import SlideRows
from foci.bags.importers import read_slides
from foci.errors import CohortError

UUID = "d4ff32cd-38cf-40ea-8213-45c2b100ac01"
IDS = ("001", "12", "c", "d", f"TCGA-05-4244-01Z-00-DX1.{UUID}")


def apply(
    folder: Path, text: str, name: str = "splits_0.csv", labels: str | None = None
) -> SlideRows:
    table = "slide_id,case_id,label\n" + "".join(f"{i},{i},x\n" for i in IDS)
    (folder / "labels.csv").write_text(labels or table)
    (folder / name).write_text(text)
    return read_slides(folder / "labels.csv", splits=folder / name)


WANT = ["train", "train", "val", None, "test"]
WITH_INDEX = ",train,val,test\n0,001,c,TCGA-05-4244-01Z-00-DX1\n1,12.0,,\n"
WITHOUT_INDEX = f"train,val,test\n001,c,{IDS[4]}\n12,,\n"
BOOLEANS = (
    ",train,val,test\n001,True,False,False\n12,TRUE,False,False\nc,False,True,False\n"
    f"d,False,False,False\n{IDS[4]},False,False,True\n"
)
LONG = f"slide_id,split\n001,train\n12,train\nc,valid\nd,\n{IDS[4]},test\n"


@pytest.mark.parametrize("text", [WITH_INDEX, WITHOUT_INDEX, BOOLEANS, LONG])
def test_every_form_gives_the_same_splits(tmp_path: Path, text: str) -> None:
    got = apply(tmp_path, text)
    assert [slide.split for slide in got.slides] == WANT
    assert [slide.slide_id for slide in got.slides] == list(IDS)
    assert got.notes == ("1 slides of the label table are in no split of splits_0.csv",)


def test_a_uuid_too_many_is_forgiven_but_not_two_candidates(tmp_path: Path) -> None:
    short = "TCGA-05-4244-01Z-00-DX1"
    text = f"train,test\n{short}.{UUID},x\n"
    rows = f"slide_id,case_id,label\n{short},p,a\nx,q,b\n"
    got = apply(tmp_path, text, labels=rows)
    assert [slide.split for slide in got.slides] == ["train", "test"]
    twins = f"slide_id,case_id,label\n{short}.{UUID},p,a\n{short}.{UUID[::-1]},p,a\nx,q,b\n"
    twins = twins.replace(UUID[::-1], UUID.replace("d4", "e4"))
    with pytest.raises(CohortError, match=f"'{short}' fits several slides of the label table"):
        apply(tmp_path, f"train,test\n{short},x\n", labels=twins)


def test_splits_of_the_label_table_are_replaced_with_a_note(tmp_path: Path) -> None:
    labels = "slide_id,case_id,label,split\na,p,x,test\nb,q,y,test\n"
    got = apply(tmp_path, "train,test\na,b\n", labels=labels)
    assert [slide.split for slide in got.slides] == ["train", "test"]
    assert got.notes == ("the splits of the label table are replaced by splits_0.csv",)


DESCRIPTOR = ",train,val,test\nLUAD,350,50,100\nLUSC,340,48,98\n"


@pytest.mark.parametrize("name", ["splits_0_descriptor.csv", "renamed.csv"])
def test_the_descriptor_is_refused_with_a_hint(tmp_path: Path, name: str) -> None:
    message = f"{name}: counts slides per class but does not name them; give the file without '_de"
    with pytest.raises(CohortError, match=message):
        apply(tmp_path, DESCRIPTOR, name)


def test_a_slide_in_two_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match="slide 'c' is in both train and test; keep it in one"):
        apply(tmp_path, "train,val,test\nc,d,001\n12,,c\n")
    with pytest.raises(CohortError, match="slide 'c' is in both train and val"):
        apply(tmp_path, ",train,val\nc,True,True\n")


def test_slides_outside_the_table_are_a_note_with_their_number(tmp_path: Path) -> None:
    names = "".join(f"n{k},\n" for k in range(7))
    got = apply(tmp_path, "train,test\n001,c\n" + names)
    assert [slide.split for slide in got.slides] == ["train", None, "test", None, None]
    assert got.notes == (
        "left out: 7 slides of splits_0.csv not in the label table (n0, n1, n2, ...)",
        "3 slides of the label table are in no split of splits_0.csv",
    )


def test_splits_of_another_cohort_are_refused(tmp_path: Path) -> None:
    message = (
        r"none of its 2 slides is in the label table \(n0, n1\); give the splits of this cohort"
    )
    with pytest.raises(CohortError, match=message):
        apply(tmp_path, "train,test\nn0,n1\n")


def folds(folder: Path, *numbers: int) -> Path:
    (folder / "labels.csv").write_text("slide_id,label\na,x\nb,y\n")
    made = folder / "splits"
    made.mkdir()
    for number in numbers:
        order = "a,b" if number % 2 else "b,a"
        (made / f"splits_{number}.csv").write_text(f",train,test\n0,{order}\n")
        (made / f"splits_{number}_bool.csv").write_text("not read")
        (made / f"splits_{number}_descriptor.csv").write_text("not read")
    return made


def test_a_folder_of_folds_is_read_at_one_of_them(tmp_path: Path) -> None:
    made, labels = folds(tmp_path, 0, 1, 10), tmp_path / "labels.csv"
    got = read_slides(labels, splits=made, fold=1)
    assert [slide.split for slide in got.slides] == ["train", "test"]
    assert not any("fold" in note for note in got.notes)
    first = read_slides(labels, splits=made)
    assert [slide.split for slide in first.slides] == ["test", "train"]
    assert "fold 0 of 3 is used; choose another with --fold" in first.notes
    message = r"splits: has no fold 3 \(it has 0, 1, 10\); choose one with --fold"
    with pytest.raises(CohortError, match=message):
        read_slides(labels, splits=made, fold=3)


def test_a_folder_without_folds_is_refused(tmp_path: Path) -> None:
    message = r"splits: holds no splits_0\.csv, splits_1\.csv, \.\.\.; give the folder that holds"
    made = folds(tmp_path)
    with pytest.raises(CohortError, match=message):
        read_slides(tmp_path / "labels.csv", splits=made, fold=0)


def test_folds_need_no_label_table(tmp_path: Path) -> None:
    files = {"a": tmp_path / "a.h5", "b": tmp_path / "b.h5"}
    got = read_slides(files, splits=folds(tmp_path, 0, 1), fold=1)
    assert [slide.split for slide in got.slides] == ["train", "test"]


def test_other_tables_are_refused(tmp_path: Path) -> None:
    message = r"is no split table \(its columns: a, b\); give columns train, val, test, or slide_id"
    with pytest.raises(CohortError, match=message):
        apply(tmp_path, "a,b\n1,2\n")
