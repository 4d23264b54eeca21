"""From a table and a folder to a cohort."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci import Cohort
from foci.bags import Slide
from foci.bags.cohort import (
    WARNING,
    CohortOptions,
    check_leakage,
    choose_classes,
    overlapping_patients,
    stamps,
    warning,
    what_is_read,
)
from foci.bags.doctor import check_overlap
from foci.bags.store import BagStore
from foci.configuration import configure
from foci.errors import FociError
from tests.bags import refused
from tests.makers import features as write


def folder(tmp_path: Path, names: list[str]) -> Path:
    for i, name in enumerate(names):
        write.trident(tmp_path / "features" / f"{name}.h5", write.features(seed=i), write.grid())
    return tmp_path / "features"


def table(tmp_path: Path, *rows: str, header: str = "slide_id,case_id,label,split") -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


NAMES = ["01", "02", "03", "04"]
ROWS = ["01,A,LUSC,train", "02,A,LUAD,train", "03,B,LUAD,test", "04,C,LUSC,test"]


def read(tmp_path: Path, *rows: str, names: list[str] = NAMES, **options: Any) -> Cohort:
    """The cohort of these rows and files; without rows there is no label table."""
    labels = table(tmp_path, *rows) if rows else None
    return Cohort.read(folder(tmp_path, names), labels, cache=False, **options)


def test_reads_labels_splits_and_bags(tmp_path: Path) -> None:
    cohort = Cohort.read(
        folder(tmp_path, NAMES), table(tmp_path, *ROWS), cache=tmp_path / "c", n_cap=99
    )
    assert cohort.classes == ("LUAD", "LUSC")
    assert [s.slide_id for s in cohort] == NAMES
    assert [cohort.target(name) for name in NAMES] == [1, 0, 0, 1]
    test = cohort.split("test")
    assert [s.slide_id for s in test] == ["03", "04"]
    assert test.counts() == {"test": {"LUAD": 1, "LUSC": 1}}
    np.testing.assert_array_equal(cohort.bag("02").features, write.features(seed=1))
    assert [bag.slide_id for bag in test.bags()] == ["03", "04"]
    assert not (tmp_path / "c").exists(), "files without tiles to leave out are read as fast"


def test_without_labels_every_file_is_a_slide(tmp_path: Path) -> None:
    cohort = read(tmp_path)
    assert (len(cohort), cohort.classes, cohort.slides[0].label) == (4, (), None)
    with refused("01: has no label; add it"):
        cohort.target("01")
    assert cohort.notes == (
        "there is no label table that names patients: 4 slides count as one patient each, so that "
        "a patient in two splits would go unnoticed",
    )


TCGA = [f"TCGA-05-{i // 2:04d}-01Z-00-DX{i % 2 + 1}" for i in range(20)]


def test_without_labels_tcga_patients_stay_whole(tmp_path: Path) -> None:
    cohort = read(tmp_path, names=TCGA)
    assert cohort.notes[0].endswith("20 slides take the patient of their TCGA barcode")
    split_of = {s.slide_id: s.split for s in cohort.with_splits((0.5, 0.2, 0.3)).slides}
    assert all(split_of[a] == split_of[b] for a, b in zip(TCGA[::2], TCGA[1::2], strict=True))
    assert set(split_of.values()) == {"train", "val", "test"}


def test_without_labels_the_splits_are_used(tmp_path: Path) -> None:
    features, splits = folder(tmp_path, [*NAMES, *TCGA[:2]]), tmp_path / "splits_0.csv"
    splits.write_text("train,test\n01,03\n02.svs,\n")
    cohort = Cohort.read(features, splits=splits, cache=False)
    want = {"01": "train", "02": "train", "03": "test"}
    assert {s.slide_id: s.split for s in cohort if s.split} == want
    assert cohort.notes[1] == "3 slides of the feature folder are in no split of splits_0.csv"
    splits.write_text("train,test\n01,77\n")
    cohort = Cohort.read(features, splits=splits, cache=False)
    assert "left out: 1 slide of splits_0.csv not in the feature folder (77)" in cohort.notes
    splits.write_text("train,test\n77,78\n")
    message = (
        r"splits_0\.csv: none of its 2 slides is in the feature folder \(77, 78\); give the spl"
    )
    with refused(message):
        Cohort.read(features, splits=splits, cache=False)
    splits.write_text(f"train,test\n{TCGA[0]},{TCGA[1]}\n")
    with refused("patient TCGA-05-0000: is in train and test"):
        Cohort.read(features, splits=splits, cache=False)


@pytest.mark.parametrize("option", ["slide_table", "label_column", "fold"])
def test_what_only_a_label_table_can_use_is_refused_without_one(
    tmp_path: Path, option: str
) -> None:
    options: dict[str, Any] = {option: 0 if option == "fold" else "x"}
    given = f"--{option.replace('_', '-')} {options[option]}"
    with refused(f"^{given}: needs --labels; give the label table, or leave it out$"):
        read(tmp_path, **options)


def test_a_slide_without_a_label_stays_in_the_cohort(tmp_path: Path) -> None:
    rows = [*ROWS[:3], "04,C,,test"]
    cohort = read(tmp_path, *rows)
    assert cohort.classes == ("LUAD", "LUSC")
    assert cohort.split("test").counts() == {"test": {"LUAD": 1, "unlabelled": 1}}
    assert cohort.notes == ("no label for 1 slide (04)",)


def test_counts_tell_no_split_from_no_splits(tmp_path: Path) -> None:
    rows = [*ROWS[:3], "04,C,LUSC,"]
    cohort = read(tmp_path, *rows)
    assert cohort.counts()["no split"] == {"LUSC": 1}
    bare = replace(cohort, slides=tuple(replace(s, split=None) for s in cohort))
    assert bare.counts() == {"all": {"LUAD": 2, "LUSC": 2}}


def test_missing_features_and_extra_files_are_said(tmp_path: Path) -> None:
    cohort = read(tmp_path, *ROWS, names=["01", "02", "99"])
    assert [s.slide_id for s in cohort] == ["01", "02"]
    assert [s.slide_id for s in cohort.skipped] == ["03", "04"]
    assert cohort.notes == ("1 feature files are in no row of the table",)


def test_nothing_matches(tmp_path: Path) -> None:
    with refused(r"labels\.csv: none of its .*\(first: 01, no feature f.*: x\)"):
        read(tmp_path, *ROWS, names=["x"])
    rows = table(tmp_path, "x,A,LUAD,gone/x.h5", header="slide_id,case_id,label,feature_path")
    with refused(r"\(first: x, its feature_path .*gone.x\.h5 is no file;"):
        Cohort.read(tmp_path / "features", rows, cache=False)


def test_classes_keep_the_order_of_the_model_and_hold_every_label(tmp_path: Path) -> None:
    assert read(tmp_path, *ROWS, classes=["LUSC", "LUAD"]).target("01") == 0
    with refused("LUSC"):
        read(tmp_path, *ROWS, classes=["LUAD", "other"])


def test_unknown_slide_and_empty_split(tmp_path: Path) -> None:
    cohort = read(tmp_path, *ROWS)
    with refused("77: is not in the cohort"):
        cohort.bag("77")
    with refused(r"split 'val': has no slides \(splits: test, train\)"):
        cohort.split("val")


def test_splitting_and_writing_back(tmp_path: Path) -> None:
    names = [f"{i:03d}" for i in range(40)]
    rows = [f"{name},P{i // 2},{'AB'[i // 2 % 2]}" for i, name in enumerate(names)]
    cohort = Cohort.read(
        folder(tmp_path, names),
        table(tmp_path, *rows, header="slide_id,case_id,label"),
        cache=False,
    ).with_splits((0.5, 0.2, 0.3), seed=3)
    patients = {
        split: {s.case_id for s in cohort.split(split)} for split in ("train", "val", "test")
    }
    assert sum(map(len, patients.values())) == 20
    assert [len(cohort.split(s)) for s in ("train", "val", "test")] == [20, 8, 12]

    cohort.to_csv(tmp_path / "again.csv")
    again = Cohort.read(tmp_path / "features", tmp_path / "again.csv", cache=False)
    assert again.slides == cohort.slides


def test_opening_a_thousand_slides_reads_no_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = tmp_path / "features"
    features.mkdir()
    for i in range(1_000):
        (features / f"{i:05d}.h5").touch()
    monkeypatch.setattr("foci.bags.store.read_bag", lambda *a, **k: pytest.fail("read a bag"))
    rows = [f"{i:05d},{i:05d},{'ab'[i % 2]}" for i in range(1_000)]
    cohort = Cohort.read(
        features, table(tmp_path, *rows, header="slide_id,case_id,label"), cache=False
    )
    assert len(cohort) == 1_000


def test_repr_is_one_short_line(tmp_path: Path) -> None:
    rows = [*ROWS, "05,D,LUAD,train"]
    cohort = read(tmp_path, *rows)
    assert repr(cohort) == (
        "Cohort(4 slides; 3 patients; classes: LUAD 2, LUSC 2; splits: train 2, test 2; 1 skipped)"
    )
    bare = read(tmp_path)
    assert repr(bare) == ("Cohort(4 slides; 4 patients; classes: unlabelled 4; splits: none)")
    large = replace(cohort, slides=cohort.slides * 500)
    assert len(repr(large)) < 120


# The options that every command reads its cohort with.


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CohortOptions:
    monkeypatch.setenv("FOCI_CACHE", str(tmp_path / "cache"))
    return CohortOptions(features=folder(tmp_path, NAMES), labels=table(tmp_path, *ROWS))


def test_every_option_reaches_the_cohort(options: CohortOptions, tmp_path: Path) -> None:
    splits = tmp_path / "splits.csv"
    splits.write_text("slide_id,split\n" + "".join(f"{name},val\n" for name in NAMES))
    more = {"splits": splits, "label_column": "case_id"}
    settings = {"layout": "trident", "mpp": 0.5, "n_cap": 7}
    cohort = options.model_copy(update={**more, **settings}).read()
    assert {slide.split for slide in cohort} == {"val"}
    assert cohort.classes == ("A", "B", "C")
    store = cohort.store
    assert (store.layout, store.mpp, store.n_cap) == ("trident", 0.5, 7)
    with refused("--fold 1: means nothing"):
        options.model_copy(update={"fold": 1}).read()
    with refused(r"--slide-table .*: means nothing"):
        options.model_copy(update={"slide_table": splits}).read()


def test_folds_classes_and_patient_overlap_reach_the_cohort(
    options: CohortOptions, tmp_path: Path
) -> None:
    folds = tmp_path / "folds"
    folds.mkdir()
    (folds / "splits_4.csv").write_text("train,test\n01,02\n03,04\n")
    more = {"splits": folds, "fold": 4, "allow_patient_overlap": True}
    cohort = options.model_copy(update=more).read()
    assert [slide.split for slide in cohort] == ["train", "test", "train", "test"]
    assert any(note.startswith("patient overlap: 1 patient is in two") for note in cohort.notes)
    with refused("patient A: is in train and test"):
        options.model_copy(update={**more, "allow_patient_overlap": None}).read()
    assert options.model_copy(update={"exclude_class": ("LUSC",)}).read().classes == ("LUAD",)
    assert options.model_copy(update={"only_classes": ("LUSC",)}).read().classes == ("LUSC",)


def test_what_the_options_leave_open_is_the_model_s(options: CohortOptions) -> None:
    assert options.read().store.n_cap is None
    assert options.read().classes == ("LUAD", "LUSC")
    trained = options.read(n_cap=5, classes=("LUSC", "LUAD"))
    assert (trained.store.n_cap, trained.classes) == (5, ("LUSC", "LUAD"))
    chosen = options.model_copy(update={"n_cap": 3, "classes": ("LUSC", "x", "LUAD")})
    told = chosen.read(n_cap=5, classes=("LUAD", "LUSC"))
    assert (told.store.n_cap, told.classes) == (3, ("LUSC", "x", "LUAD"))
    with refused("'LUSC', not one of LUAD, other"):
        options.read(classes=("LUAD", "other"))


def test_a_split_of_one_class_can_have_classes(tmp_path: Path) -> None:
    labels = table(tmp_path, *ROWS[:2], "03,B,LUAD,test", "04,C,LUAD,test")
    options = CohortOptions(features=folder(tmp_path, NAMES), labels=labels)
    assert options.read(classes=("LUAD", "LUSC")).counts()["test"] == {"LUAD": 2}


@pytest.mark.parametrize(
    ("name", "value"), [("n_cap", 0), ("fold", -1), ("mpp", 0.0), ("labls", "x"), ("layout", 3)]
)
def test_mistakes_are_refused(name: str, value: object) -> None:
    with pytest.raises(FociError, match=name):
        configure(CohortOptions, {"features": "f", name: value})


# Classes that are kept or left out.


SLIDES = tuple(
    Slide(f"{label or 'none'}{i}", f"p{i}", label)
    for label, n in (("LUAD", 3), ("LUSC", 2), ("normal", 4), (None, 1))
    for i in range(n)
)


@pytest.mark.parametrize(
    ("only", "exclude", "labels", "notes"),
    [
        (None, None, {"LUAD", "LUSC", "normal", None}, []),
        (None, ["normal"], {"LUAD", "LUSC", None}, ["4 slides of normal, by --exclude-class"]),
        (["LUSC", "LUAD"], None, {"LUAD", "LUSC"},
         ["4 slides of normal, by --only-classes", "1 slide without a label, by --only-classes"]),
    ],
)  # fmt: skip
def test_classes_are_left_out_with_a_note(
    only: list[str] | None, exclude: list[str] | None, labels: set[str | None], notes: list[str]
) -> None:
    kept, said = choose_classes(SLIDES, only, exclude)
    assert kept == tuple(slide for slide in SLIDES if slide.label in labels)
    assert said == tuple(f"left out: {note}" for note in notes)


@pytest.mark.parametrize(
    ("only", "exclude", "message"),
    [
        (None, ["Normal"],
         r"--exclude-class Normal: is no class of the label table \(LUAD, LUSC, normal\); write"),
        (["LUAD", "x"], None, "--only-classes x: is no class of the label table"),
        (None, ["LUAD", "LUSC", "normal"], "--exclude-class: leaves no class over; keep at least"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(
    only: list[str] | None, exclude: list[str] | None, message: str
) -> None:
    with refused(f"^{message}"):
        choose_classes(SLIDES, only, exclude)


def test_a_cohort_without_a_class_counts_its_files_as_known(tmp_path: Path) -> None:
    rows = ("01,A,LUAD,train", "02,A,LUSC,train", "03,B,LUAD,test", "04,C,normal,test")
    features, labels = folder(tmp_path, NAMES), table(tmp_path, *rows, "05,D,normal,test")
    cohort = Cohort.read(features, labels, cache=False, exclude_class=("normal",))
    assert cohort.classes == ("LUAD", "LUSC")
    assert [slide.slide_id for slide in cohort] == ["01", "02", "03"]
    assert cohort.skipped == ()
    assert "left out: 2 slides of normal, by --exclude-class" in cohort.notes
    assert not any("feature files are in no row" in note for note in cohort.notes)
    with refused("--exclude-class normal: needs --labels; give the label"):
        Cohort.read(features, cache=False, exclude_class=("normal",))


def test_patient_overlap_in_a_class_that_is_left_out_does_not_matter(tmp_path: Path) -> None:
    rows = ("01,A,LUAD,train", "02,B,LUSC,train", "03,C,LUAD,test", "04,A,normal,test")
    with refused("patient A: is in train and test"):
        read(tmp_path, *rows)
    assert len(read(tmp_path, *rows, exclude_class=("normal",))) == 3


def test_a_label_outside_the_model_s_classes_names_the_option(tmp_path: Path) -> None:
    labels = table(tmp_path, "01,A,LUAD,train", "02,B,normal,train")
    cohort = Cohort.read(folder(tmp_path, NAMES), labels, cache=False)
    message = "slide 02: has the label 'normal', not one of LUAD, LUSC; .*: --exclude-class normal$"
    with refused(message):
        cohort.with_classes(("LUAD", "LUSC"))


# Patients in two splits: found, refused, or gone on with.


OVERLAPPING = (
    Slide("a1", "A", "x", split="test"),
    Slide("a2", "A", "x", split="train"),
    Slide("b1", "B", "y", split="val"),
    Slide("b2", "B", "y"),
    Slide("c1", "C", "y", split="test"),
    Slide("c2", "C", "x", split="val"),
    Slide("c3", "C", "x", split="train"),
)


def test_every_overlapping_patient_with_the_splits_in_order() -> None:
    assert overlapping_patients(OVERLAPPING) == {
        "A": ("train", "test"),
        "C": ("train", "val", "test"),
    }
    with refused(r"^patient A: is in train and test \(and 1 more patients\); put all slides of a"):
        check_leakage(OVERLAPPING)
    assert overlapping_patients(OVERLAPPING[1:4]) == {}
    check_leakage(OVERLAPPING[1:4])


def test_doctor_lists_all_of_them() -> None:
    check = check_overlap(OVERLAPPING)
    assert (check.name, check.status) == ("leakage", "FAIL")
    listed = ("A (train and test)", "C (train and val and test)")
    assert check.detail == f"2 patients are in two splits: {', '.join(listed)}"
    assert check.items == listed
    assert check.fix.endswith("or keep these patients: --allow-patient-overlap")
    allowed = check_overlap(OVERLAPPING, allowed=True)
    assert (allowed.status, allowed.detail, allowed.items) == ("WARN", check.detail, listed)
    assert "what is measured on their slides is too good" in allowed.fix


def test_refused_unless_allowed_and_then_with_a_warning(tmp_path: Path) -> None:
    rows = ("01,A,LUAD,train", "02,A,LUSC,test", "03,B,LUAD,test", "04,C,LUSC,train")
    message = (
        r"^patient A: is in train and test; put all slides of a patient into one split, or split "
        r"again by patient, or keep these patients: --allow-patient-overlap "
        r"\(foci doctor lists them\)$"
    )
    with refused(message):
        read(tmp_path, *rows)
    cohort = read(tmp_path, *rows, allow_patient_overlap=True)
    assert [slide.split for slide in cohort] == ["train", "test", "test", "train"]
    (note,) = [note for note in cohort.notes if note.startswith(WARNING)]
    assert note == (
        "patient overlap: 1 patient is in two splits (A (train and test)), as "
        "--allow-patient-overlap allows: what is measured on their slides is too good, because the "
        "model has seen the same patients"
    )


def test_the_warning_names_three_and_counts_all() -> None:
    overlap = {f"p{i}": ("train", "test") for i in range(5)}
    assert warning(overlap).startswith(
        "patient overlap: 5 patients are in two splits (p0 (train and"
    )
    assert "p2 (train and test), ...)" in warning(overlap)


# Feature files are known by name, size and time of change, sidecars included.


def files(folder: Path, shift: float = 0.0) -> Cohort:
    for i, name in enumerate(("a", "b")):
        x = np.full((3 + i, 4), shift, np.float32)
        write.trident(folder / f"{name}.h5", x, write.grid(3 + i))
        os.utime(folder / f"{name}.h5", ns=(5, 100 + i))
    return Cohort.read(folder, cache=False)


def test_name_size_and_time_of_every_slide(tmp_path: Path) -> None:
    cohort = files(tmp_path)
    sizes = [(tmp_path / name).stat().st_size for name in ("a.h5", "b.h5")]
    assert stamps(cohort) == [[["a.h5", sizes[0], 100]], [["b.h5", sizes[1], 101]]]


def test_moved_files_are_the_same_and_changed_ones_are_not(tmp_path: Path) -> None:
    here, moved = files(tmp_path / "here"), files(tmp_path / "moved")
    assert stamps(here) == stamps(moved)
    os.utime(tmp_path / "moved" / "b.h5", ns=(5, 102))
    assert stamps(here)[0] == stamps(moved)[0]
    assert stamps(here)[1] != stamps(moved)[1]


def test_a_missing_file_has_a_name_and_a_slide_without_one_nothing(tmp_path: Path) -> None:
    slides = (Slide("a", "a", feature_path=tmp_path / "a.h5"), Slide("b", "b"))
    assert stamps(Cohort(slides)) == [[["a.h5", None, None]], []]


def test_files_beside_a_feature_file_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = files(tmp_path)
    (tmp_path / "index.npz").write_bytes(b"12345")
    os.utime(tmp_path / "index.npz", ns=(5, 7))
    monkeypatch.setattr(BagStore, "read_beside", lambda store, path: (tmp_path / "index.npz",))
    assert [own[1] for own in stamps(cohort)] == [["index.npz", 5, 7]] * 2


def test_what_is_read_differs_with_slides_classes_and_settings(tmp_path: Path) -> None:
    cohort = files(tmp_path)
    store = cohort.store
    others = [
        replace(cohort, slides=cohort.slides[:1]),
        replace(cohort, slides=(replace(cohort.slides[0], label="a"), cohort.slides[1])),
        replace(cohort, classes=("a", "b")),
        *(
            replace(cohort, store=BagStore(**{"n_cap": store.n_cap, **change}))
            for change in ({"n_cap": 2}, {"layout": "trident"}, {"mpp": 0.5})
        ),
    ]
    found = [str(what_is_read(each)) for each in (cohort, *others)]
    assert len(set(found)) == len(found) == 7
    assert str(what_is_read(files(tmp_path))) == found[0]


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (("1", "1.0"), "writes one label in two ways: '1' and '1.0'; write one of them"),
        (("0", "00"), "writes one label in two ways: '0' and '00'"),
        (("a", "NaN"), "has the label 'NaN', which is no class; leave the cell empty, or leave"),
        (("a", "nan"), "has the label 'nan', which is no class"),
    ],
)
def test_labels_that_are_no_classes(tmp_path: Path, labels: tuple[str, str], says: str) -> None:
    rows = [f"0{i},c{i},{label},train" for i, label in enumerate(labels, start=1)]
    with refused(re.escape(says)):
        read(tmp_path, *rows)
    assert read(tmp_path, *rows, exclude_class=labels[1:]).classes == labels[:1]
