"""Classes that are kept or left out."""

from pathlib import Path

import pytest

from foci import Cohort
from foci.bags.bag import Slide
from foci.bags.cohort import choose_classes
from foci.errors import CohortError
from tests.bags.cohort.test_cohort import NAMES, folder, table

SLIDES = tuple(
    Slide(f"{label or 'none'}{i}", f"p{i}", label)
    for label, n in (("LUAD", 3), ("LUSC", 2), ("normal", 4), (None, 1))
    for i in range(n)
)


def labels_of(slides: tuple[Slide, ...]) -> set[str | None]:
    return {slide.label for slide in slides}


def test_one_of_three_classes_is_left_out_with_a_note() -> None:
    kept, notes = choose_classes(SLIDES, None, ("normal",))
    assert labels_of(kept) == {"LUAD", "LUSC", None}
    assert len(kept) == 6
    assert notes == ("left out: 4 slides of normal, by --exclude-class",)


def test_two_of_three_classes_are_kept_and_no_unlabelled_slide() -> None:
    kept, notes = choose_classes(SLIDES, ("LUSC", "LUAD"), None)
    assert labels_of(kept) == {"LUAD", "LUSC"}
    assert notes == (
        "left out: 4 slides of normal, by --only-classes",
        "left out: 1 slide without a label, by --only-classes",
    )


def test_nothing_asked_nothing_changed() -> None:
    assert choose_classes(SLIDES, None, None) == (SLIDES, ())


def test_mistakes_are_one_line() -> None:
    message = (
        r"^--exclude-class Normal: is no class of the label table \(LUAD, LUSC, normal\); write"
    )
    with pytest.raises(CohortError, match=message):
        choose_classes(SLIDES, None, ("Normal",))
    with pytest.raises(CohortError, match=r"^--only-classes x: is no class of the label table"):
        choose_classes(SLIDES, ("LUAD", "x"), None)
    with pytest.raises(CohortError, match=r"^--exclude-class: leaves no class over; keep at least"):
        choose_classes(SLIDES, None, ("LUAD", "LUSC", "normal"))


def test_a_cohort_without_a_class_counts_its_files_as_known(tmp_path: Path) -> None:
    rows = ("01,A,LUAD,train", "02,A,LUSC,train", "03,B,LUAD,test", "04,C,normal,test")
    features, labels = folder(tmp_path, NAMES), table(tmp_path, *rows, "05,D,normal,test")
    cohort = Cohort.read(features, labels, cache=False, exclude_class=("normal",))
    assert cohort.classes == ("LUAD", "LUSC")
    assert [slide.slide_id for slide in cohort] == ["01", "02", "03"]
    assert cohort.skipped == ()
    assert "left out: 2 slides of normal, by --exclude-class" in cohort.notes
    assert not any("feature files are in no row" in note for note in cohort.notes)
    with pytest.raises(CohortError, match="--exclude-class normal: needs --labels; give the label"):
        Cohort.read(features, cache=False, exclude_class=("normal",))


def test_patient_overlap_in_a_class_that_is_left_out_does_not_matter(tmp_path: Path) -> None:
    rows = ("01,A,LUAD,train", "02,B,LUSC,train", "03,C,LUAD,test", "04,A,normal,test")
    features, labels = folder(tmp_path, NAMES), table(tmp_path, *rows)
    with pytest.raises(CohortError, match="patient A: is in train and test"):
        Cohort.read(features, labels, cache=False)
    assert len(Cohort.read(features, labels, cache=False, exclude_class=("normal",))) == 3


def test_a_label_outside_the_model_s_classes_names_the_option(tmp_path: Path) -> None:
    labels = table(tmp_path, "01,A,LUAD,train", "02,B,normal,train")
    cohort = Cohort.read(folder(tmp_path, NAMES), labels, cache=False)
    message = "slide 02: has the label 'normal', not one of LUAD, LUSC; .*: --exclude-class normal$"
    with pytest.raises(CohortError, match=message):
        cohort.with_classes(("LUAD", "LUSC"))
