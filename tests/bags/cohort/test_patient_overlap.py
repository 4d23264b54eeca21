"""Patients in two splits: found, refused, or gone on with."""

from pathlib import Path

import pytest

from foci import Cohort
from foci.bags.bag import Slide
from foci.bags.cohort import WARNING, overlapping_patients, warning
from foci.bags.doctor import check_leakage
from foci.errors import CohortError
from tests.bags.cohort.test_cohort import NAMES, folder, table

SLIDES = (
    Slide("a1", "A", "x", split="test"),
    Slide("a2", "A", "x", split="train"),
    Slide("b1", "B", "y", split="val"),
    Slide("b2", "B", "y"),
    Slide("c1", "C", "y", split="test"),
    Slide("c2", "C", "x", split="val"),
    Slide("c3", "C", "x", split="train"),
)


def test_every_overlapping_patient_with_the_splits_in_order() -> None:
    assert overlapping_patients(SLIDES) == {"A": ("train", "test"), "C": ("train", "val", "test")}
    assert overlapping_patients(SLIDES[1:4]) == {}


def test_doctor_lists_all_of_them() -> None:
    check = check_leakage(SLIDES)
    assert (check.name, check.status) == ("leakage", "FAIL")
    listed = ("A (train and test)", "C (train and val and test)")
    assert check.detail == f"2 patients are in two splits: {', '.join(listed)}"
    assert check.items == listed
    assert check.fix.endswith("or keep these patients: --allow-patient-overlap")
    allowed = check_leakage(SLIDES, allowed=True)
    assert (allowed.status, allowed.detail, allowed.items) == ("WARN", check.detail, listed)
    assert "what is measured on their slides is too good" in allowed.fix


def test_refused_unless_allowed_and_then_with_a_warning(tmp_path: Path) -> None:
    features = folder(tmp_path, NAMES)
    rows = ("01,A,LUAD,train", "02,A,LUSC,test", "03,B,LUAD,test", "04,C,LUSC,train")
    labels = table(tmp_path, *rows)
    message = (
        r"^patient A: is in train and test; put all slides of a patient into one split, or split "
        r"again by patient, or keep these patients: --allow-patient-overlap "
        r"\(foci doctor lists them\)$"
    )
    with pytest.raises(CohortError, match=message):
        Cohort.read(features, labels, cache=False)
    cohort = Cohort.read(features, labels, cache=False, allow_patient_overlap=True)
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
