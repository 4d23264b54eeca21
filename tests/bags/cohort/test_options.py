"""The options that every command reads its cohort with."""

from pathlib import Path

import pytest

from foci.bags import N_CAP
from foci.bags.cohort import CohortOptions
from foci.configuration import configure
from foci.errors import CohortError, FociError
from tests.bags.cohort.test_cohort import NAMES, ROWS, folder, table


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CohortOptions:
    monkeypatch.setenv("FOCI_CACHE", str(tmp_path / "cache"))
    return CohortOptions(features=folder(tmp_path, NAMES), labels=table(tmp_path, *ROWS))


def test_every_option_reaches_the_cohort(options: CohortOptions, tmp_path: Path) -> None:
    splits = tmp_path / "splits.csv"
    splits.write_text("slide_id,split\n" + "".join(f"{name},val\n" for name in NAMES))
    more = {
        "splits": splits,
        "label_column": "case_id",
        "layout": "trident",
        "mpp": 0.5,
        "n_cap": 7,
    }
    cohort = options.model_copy(update=more).read()
    assert {slide.split for slide in cohort} == {"val"}
    assert cohort.classes == ("A", "B", "C")
    store = cohort.store
    assert (store.layout, store.mpp, store.n_cap) == ("trident", 0.5, 7)
    with pytest.raises(CohortError, match="--fold 1: means nothing"):
        options.model_copy(update={"fold": 1}).read()
    with pytest.raises(CohortError, match=r"--slide-table .*: means nothing"):
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
    with pytest.raises(CohortError, match="patient A: is in train and test"):
        options.model_copy(update={**more, "allow_patient_overlap": None}).read()
    assert options.model_copy(update={"exclude_class": ("LUSC",)}).read().classes == ("LUAD",)
    assert options.model_copy(update={"only_classes": ("LUSC",)}).read().classes == ("LUSC",)


def test_what_the_options_leave_open_is_the_model_s(options: CohortOptions) -> None:
    assert options.read().store.n_cap == N_CAP
    assert options.read().classes == ("LUAD", "LUSC")
    trained = options.read(n_cap=5, classes=("LUSC", "LUAD"))
    assert (trained.store.n_cap, trained.classes) == (5, ("LUSC", "LUAD"))
    chosen = options.model_copy(update={"n_cap": 3, "classes": ("LUSC", "x", "LUAD")})
    told = chosen.read(n_cap=5, classes=("LUAD", "LUSC"))
    assert (told.store.n_cap, told.classes) == (3, ("LUSC", "x", "LUAD"))
    with pytest.raises(CohortError, match="'LUSC', not one of LUAD, other"):
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
