"""Label tables of the common tools, and split tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci.bags.bag import Slide, SlideRows
from foci.bags.importers import IMPORTERS, read_slides
from foci.errors import CohortError
from tests.bags import refused


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
    for importer in IMPORTERS.values():
        assert importer.description in message


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
    with refused("is of no known format"):
        read_slides(table(tmp_path, header))


def test_tables_in_the_wrong_place(tmp_path: Path) -> None:
    with refused(r"is a split table, not labels .* and this one as --splits"):
        read_slides(table(tmp_path, "train,val,test"))
    with refused(r"is a slide table, not labels .* this one as --slide-table"):
        read_slides(table(tmp_path, "PATIENT,FILENAME"))


def test_options_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    tidy = table(tmp_path, "slide_id,label")
    message = "^--fold 0: means nothing for .*a.csv, a table of the format 'tidy'; leave it out"
    with refused(message):
        read_slides(tidy, fold=0)
    with refused(r"^--slide-table .*: means nothing"):
        read_slides(tidy, slide_table=tidy)
    with refused(r"^--label-column x: means nothing .*'torchmil'"):
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


# FOCI's own table and CLAM's dataset CSV.


def read_tidy(folder: Path, text: str, **options: str) -> SlideRows:
    path = folder / "labels.csv"
    path.write_text(text)
    return read_slides(path, label_column=options.get("label_column"))


def test_clam_dataset(tmp_path: Path) -> None:
    got = read_tidy(tmp_path, "case_id,slide_id,label\np1,007,tumor\np1,008,normal\n")
    assert got.slides == (Slide("007", "p1", "tumor"), Slide("008", "p1", "normal"))
    assert got.notes == ()


def test_all_columns_and_paths_relative_to_the_table(tmp_path: Path) -> None:
    text = (
        "slide_id,case_id,label,split,site,slide_path,feature_path\n"
        "a,p,x,Training,karolinska,wsi/a.svs,/data/a.h5\n"
        "b,q,y,,,,\n"
    )
    first, second = read_tidy(tmp_path, text).slides
    assert first == Slide(
        "a", "p", "x", "train", "karolinska", tmp_path / "wsi" / "a.svs", Path("/data/a.h5")
    )
    assert second == Slide("b", "q", "y")


def test_patients_are_derived_and_noted(tmp_path: Path) -> None:
    text = "slide_id,label\nTCGA-05-4244-01Z-00-DX1,x\nTCGA-05-4244-01Z-00-DX2,x\nmine,y\n"
    got = read_tidy(tmp_path, text)
    assert [s.case_id for s in got.slides] == ["TCGA-05-4244", "TCGA-05-4244", "mine"]
    assert got.notes == (
        "the table names no patients: 2 slides take the patient of their TCGA barcode; 1 slides "
        "count as one patient each, so that a patient in two splits would go unnoticed",
    )


def test_an_empty_label_is_none_and_noted(tmp_path: Path) -> None:
    got = read_tidy(tmp_path, "slide_id,case_id,grade\na,p,3\nb,q,\n", label_column="grade")
    assert got.slides == (Slide("a", "p", "3"), Slide("b", "q", None))
    assert got.notes == ("no grade for 1 slide (b)",)


def test_label_column(tmp_path: Path) -> None:
    text = "slide_id,case_id,oncotree\na,p,LUAD\n"
    assert read_tidy(tmp_path, text, label_column="oncotree").slides == (Slide("a", "p", "LUAD"),)
    with refused(
        r"no column 'label' .*slide_id, case_id, oncotree.*or name .* with --label-column$",
    ):
        read_tidy(tmp_path, text)


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
    with refused(r"labels\.csv, " + message):
        read_tidy(tmp_path, "slide_id,case_id,label,split\n" + rows)


def test_words_for_splits(tmp_path: Path) -> None:
    words = {
        "train": ("train", "training"),
        "val": ("val", "VALID", "validation", "tune", "dev"),
        "test": ("test", "Testing"),
    }
    for split, names in words.items():
        rows = "".join(f"s{k},p{k},x,{name}\n" for k, name in enumerate(names))
        got = read_tidy(tmp_path, "slide_id,case_id,label,split\n" + rows)
        assert {slide.split for slide in got.slides} == {split}


# Patho-Bench's k=all.tsv.


FOLDS = """case_id slide_id ER_status fold_0 fold_1 fold_10
p1 001 pos train test train
p2 002 neg test train
p3 003 neg train train test
"""


def read_pathobench(
    folder: Path, text: str = FOLDS, label_column: str | None = None, fold: int | None = None
) -> SlideRows:
    path = folder / "k=all.tsv"
    rows = [line.split(" ") for line in text.splitlines()]
    path.write_text("\n".join("\t".join([*row, ""][: len(rows[0])]) for row in rows))
    return read_slides(path, label_column=label_column, fold=fold)


def test_first_fold_by_default(tmp_path: Path) -> None:
    got = read_pathobench(tmp_path)
    assert got.slides == (
        Slide("001", "p1", "pos", "train"),
        Slide("002", "p2", "neg", "test"),
        Slide("003", "p3", "neg", "train"),
    )
    assert got.notes == ("fold 0 of 3 is used",)


def test_another_fold_with_a_gap(tmp_path: Path) -> None:
    got = read_pathobench(tmp_path, fold=10)
    assert [s.split for s in got.slides] == ["train", None, "test"]
    assert got.notes == ()


def test_label_column_among_several(tmp_path: Path) -> None:
    text = "case_id slide_id er pr fold_0\np 1 a b val\n"
    assert read_pathobench(tmp_path, text, label_column="pr").slides == (
        Slide("1", "p", "b", "val"),
    )
    with refused(r"may be the label \(er, pr\); name it with --label-"):
        read_pathobench(tmp_path, text)
    with refused(r"no column 'prr' .* rename 'pr' to 'prr', or name anot"):
        read_pathobench(tmp_path, text, label_column="prr")


def test_refusals_of_pathobench(tmp_path: Path) -> None:
    with refused(r"k=all.tsv: has no fold 2 \(it has 0, 1, 10\); choose"):
        read_pathobench(tmp_path, fold=2)
    with refused("has no label column; add one"):
        read_pathobench(tmp_path, "case_id slide_id fold_0\np 1 train\n")
    with refused("has no column 'case_id'"):
        read_pathobench(tmp_path, "slide_id er fold_0\n1 a train\n")
    with refused("line 3: slide '1' is already in line 2"):
        read_pathobench(tmp_path, "case_id slide_id er fold_0\np 1 a train\np 1 a train\n")


# STAMP's clinical and slide tables.


CLINI = "PATIENT,KRAS,AGE\np1,mut,61\np2,wt,55\np3,,70\np4,wt,40\n"
SLIDES = "PATIENT,FILENAME\np1,site/TCGA-a.1.h5\np1,b.h5\np2,sub\\c.H5\np9,d.h5\np3,e.h5\n"


def read_stamp(
    folder: Path, clini: str = CLINI, slides: str = SLIDES, label: str | None = "KRAS"
) -> SlideRows:
    (folder / "clini.csv").write_text(clini)
    (folder / "slides.csv").write_text(slides)
    return read_slides(folder / "clini.csv", slide_table=folder / "slides.csv", label_column=label)


def test_both_tables_are_joined_and_the_rest_is_reported(tmp_path: Path) -> None:
    got = read_stamp(tmp_path)
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
    got = read_stamp(tmp_path, clini, "PATIENT,FILENAME\np0,a.h5\n", label=None)
    assert got.notes == ("7 patients have no slide and are left out (q0, q1, q2, q3, q4, ...)",)


def test_names_without_a_known_ending_stay_whole(tmp_path: Path) -> None:
    got = read_stamp(
        tmp_path, "PATIENT,KRAS\np,x\n", "PATIENT,FILENAME\np,a/TCGA.uuid-1\n", label=None
    )
    assert got.slides == (Slide("TCGA.uuid-1", "p", "x"),)


def test_refusals_of_stamp(tmp_path: Path) -> None:
    with refused(r"clini.csv: has several columns .*\(KRAS, AGE\)"):
        read_stamp(tmp_path, label=None)
    with refused(r"clini.csv: names patients but no slides; give the slid"):
        read_slides(tmp_path / "clini.csv")
    with refused("line 3: patient 'p1' is already in line 2"):
        read_stamp(tmp_path, "PATIENT,KRAS\np1,mut\np1,wt\n")
    with refused(r"slides.csv, line 3: slide 'a' is already in line 2"):
        read_stamp(tmp_path, slides="PATIENT,FILENAME\np1,x/a.h5\np2,y/a.h5\n")
    with refused(r"slides.csv: has no column 'FILENAME' .*'FILE_NAME'"):
        read_stamp(tmp_path, slides="PATIENT,FILE_NAME\np1,a.h5\n")
    with refused(r"slides.csv, line 2: the cell 'PATIENT' is empty"):
        read_stamp(tmp_path, slides="PATIENT,FILENAME\n,a.h5\n")
    with refused(r"no patient with a 'KRAS' has a slide in .*same patient"):
        read_stamp(tmp_path, slides="PATIENT,FILENAME\nP1,a.h5\n")


# torchmil's folder of arrays.


def read_torchmil(folder: Path, **labels: Any) -> SlideRows:
    (folder / "labels").mkdir(exist_ok=True)
    for bag, label in labels.items():
        np.save(folder / "labels" / f"{bag}.npy", label)
    rows = "".join(f"{bag},{split}\n" for bag, split in (("a", "train"), ("b", "test")))
    (folder / "splits.csv").write_text("bag_name,split\n" + rows)
    return read_slides(folder / "splits.csv")


def test_labels_beside_the_table(tmp_path: Path) -> None:
    got = read_torchmil(tmp_path, a=np.array([1.0]), b=np.array(0))
    assert got.slides == (
        Slide("a", "a", "1", "train"),
        Slide("b", "b", "0", "test"),
    )
    assert got.notes[0].startswith("the table names no patients: 2 slides count as one patient")


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (np.array([0, 1]), "b.npy: holds 2 values, not one class number; write one whole number"),
        (np.array(0.5), "b.npy: holds 0.5, which is no class number"),
        (np.array(np.nan), "holds nan, which is no class number"),
        (np.array("LUAD"), "is not a readable NumPy file of numbers .*write the label as one num"),
        (np.array([None]), "is not a readable NumPy file of numbers .*without pickle"),
    ],
)
def test_bad_labels(tmp_path: Path, label: Any, message: str) -> None:
    with refused(message):
        read_torchmil(tmp_path, a=1, b=label)


def test_missing_label_file(tmp_path: Path) -> None:
    with refused(r"labels.b\.npy: does not exist; keep the folder labels/"):
        read_torchmil(tmp_path, a=1)


# CLAM's split files, in all their forms.


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
    with refused(f"'{short}' fits several slides of the label table"):
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
    with refused(message):
        apply(tmp_path, DESCRIPTOR, name)


def test_a_slide_in_two_columns_is_refused(tmp_path: Path) -> None:
    with refused("slide 'c' is in both train and test; keep it in one"):
        apply(tmp_path, "train,val,test\nc,d,001\n12,,c\n")
    with refused("slide 'c' is in both train and val"):
        apply(tmp_path, ",train,val\nc,True,True\n")


def test_slides_outside_the_table_are_a_note_with_their_number(tmp_path: Path) -> None:
    names = "".join(f"n{k},\n" for k in range(7))
    got = apply(tmp_path, "train,test\n001,c\n" + names)
    assert [slide.split for slide in got.slides] == ["train", None, "test", None, None]
    assert got.notes == (
        "left out: 7 slides of splits_0.csv not in the label table (n0, n1, n2, ...)",
        "3 slides of the label table are in no split of splits_0.csv",
    )


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
    with refused(r"splits: has no fold 3 \(it has 0, 1, 10\); choose one with --fold"):
        read_slides(labels, splits=made, fold=3)


def test_a_folder_without_folds_is_refused(tmp_path: Path) -> None:
    message = r"splits: holds no splits_0\.csv, splits_1\.csv, \.\.\.; give the folder that holds"
    made = folds(tmp_path)
    with refused(message):
        read_slides(tmp_path / "labels.csv", splits=made, fold=0)


def test_folds_need_no_label_table(tmp_path: Path) -> None:
    files = {"a": tmp_path / "a.h5", "b": tmp_path / "b.h5"}
    got = read_slides(files, splits=folds(tmp_path, 0, 1), fold=1)
    assert [slide.split for slide in got.slides] == ["train", "test"]


def test_other_tables_are_refused(tmp_path: Path) -> None:
    message = r"is no split table \(its columns: a, b\); give columns train, val, test, or slide_id"
    with refused(message):
        apply(tmp_path, "a,b\n1,2\n")


@pytest.mark.parametrize("extra", ["", ",fold_0"])
def test_patient_id_names_the_patients(tmp_path: Path, extra: str) -> None:
    path, value = tmp_path / "a.csv", ",train" if extra else ""
    path.write_text(f"slide_id,patient_id,label{extra}\ns1,p,a{value}\ns2,p,b{value}\n")
    rows = read_slides(path)
    assert [slide.case_id for slide in rows.slides] == ["p", "p"]
    assert [slide.label for slide in rows.slides] == ["a", "b"]
    assert rows.notes == ()
