"""From a table and a folder to a cohort."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci import Cohort
from foci.errors import CohortError
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


def test_reads_labels_splits_and_bags(tmp_path: Path) -> None:
    cohort = Cohort.read(folder(tmp_path, NAMES), table(tmp_path, *ROWS), cache=tmp_path / "c")
    assert cohort.classes == ("LUAD", "LUSC")
    assert [s.slide_id for s in cohort] == NAMES
    assert [cohort.target(name) for name in NAMES] == [1, 0, 0, 1]
    test = cohort.split("test")
    assert [s.slide_id for s in test] == ["03", "04"]
    assert test.counts() == {"test": {"LUAD": 1, "LUSC": 1}}
    np.testing.assert_array_equal(cohort.bag("02").features, write.features(seed=1))
    assert [bag.slide_id for bag in test.bags()] == ["03", "04"]
    assert len(list((tmp_path / "c").iterdir())) == 3


def test_without_labels_every_file_is_a_slide(tmp_path: Path) -> None:
    cohort = Cohort.read(folder(tmp_path, NAMES), cache=False)
    assert (len(cohort), cohort.classes, cohort.slides[0].label) == (4, (), None)
    with pytest.raises(CohortError, match="01: has no label; add it"):
        cohort.target("01")
    assert cohort.notes == (
        "there is no label table that names patients: 4 slides count as one patient each, so that "
        "a patient in two splits would go unnoticed",
    )


TCGA = [f"TCGA-05-{i // 2:04d}-01Z-00-DX{i % 2 + 1}" for i in range(20)]


def test_without_labels_tcga_patients_stay_whole(tmp_path: Path) -> None:
    cohort = Cohort.read(folder(tmp_path, TCGA), cache=False)
    assert cohort.notes[0].endswith("20 slides take the patient of their TCGA barcode")
    split_of = {s.slide_id: s.split for s in cohort.with_splits((0.5, 0.2, 0.3)).slides}
    assert all(split_of[a] == split_of[b] for a, b in zip(TCGA[::2], TCGA[1::2], strict=True))
    assert set(split_of.values()) == {"train", "val", "test"}


def test_without_labels_the_splits_are_used(tmp_path: Path) -> None:
    features, splits = folder(tmp_path, [*NAMES, *TCGA[:2]]), tmp_path / "splits_0.csv"
    splits.write_text("train,test\n01,03\n02.svs,\n")
    cohort = Cohort.read(features, splits=splits, cache=False)
    assert {s.slide_id: s.split for s in cohort if s.split} == {
        "01": "train",
        "02": "train",
        "03": "test",
    }
    assert cohort.notes[1] == "3 slides of the feature folder are in no split of splits_0.csv"
    splits.write_text("train,test\n01,77\n")
    cohort = Cohort.read(features, splits=splits, cache=False)
    assert "left out: 1 slide of splits_0.csv not in the feature folder (77)" in cohort.notes
    splits.write_text("train,test\n77,78\n")
    message = (
        r"splits_0\.csv: none of its 2 slides is in the feature folder \(77, 78\); give the spl"
    )
    with pytest.raises(CohortError, match=message):
        Cohort.read(features, splits=splits, cache=False)
    splits.write_text(f"train,test\n{TCGA[0]},{TCGA[1]}\n")
    with pytest.raises(CohortError, match="patient TCGA-05-0000: is in train and test"):
        Cohort.read(features, splits=splits, cache=False)


@pytest.mark.parametrize("option", ["slide_table", "label_column", "fold"])
def test_what_only_a_label_table_can_use_is_refused_without_one(
    tmp_path: Path, option: str
) -> None:
    options: dict[str, Any] = {option: 0 if option == "fold" else "x"}
    given = f"--{option.replace('_', '-')} {options[option]}"
    message = f"^{given}: needs --labels; give the label table, or leave it out$"
    with pytest.raises(CohortError, match=message):
        Cohort.read(folder(tmp_path, NAMES), cache=False, **options)


def test_a_slide_without_a_label_stays_in_the_cohort(tmp_path: Path) -> None:
    rows = [*ROWS[:3], "04,C,,test"]
    cohort = Cohort.read(folder(tmp_path, NAMES), table(tmp_path, *rows), cache=False)
    assert cohort.classes == ("LUAD", "LUSC")
    assert cohort.split("test").counts() == {"test": {"LUAD": 1, "unlabelled": 1}}
    assert cohort.notes == ("no label for 1 slide (04)",)


def test_counts_tell_no_split_from_no_splits(tmp_path: Path) -> None:
    rows = [*ROWS[:3], "04,C,LUSC,"]
    cohort = Cohort.read(folder(tmp_path, NAMES), table(tmp_path, *rows), cache=False)
    assert cohort.counts()["no split"] == {"LUSC": 1}
    bare = replace(cohort, slides=tuple(replace(s, split=None) for s in cohort))
    assert bare.counts() == {"all": {"LUAD": 2, "LUSC": 2}}


def test_missing_features_and_extra_files_are_said(tmp_path: Path) -> None:
    cohort = Cohort.read(folder(tmp_path, ["01", "02", "99"]), table(tmp_path, *ROWS), cache=False)
    assert [s.slide_id for s in cohort] == ["01", "02"]
    assert [s.slide_id for s in cohort.skipped] == ["03", "04"]
    assert cohort.notes == ("1 feature files are in no row of the table",)


def test_nothing_matches(tmp_path: Path) -> None:
    with pytest.raises(
        CohortError, match=r"labels\.csv: none of its .*\(first: 01, no feature f.*: x\)"
    ):
        Cohort.read(folder(tmp_path, ["x"]), table(tmp_path, *ROWS), cache=False)
    rows = table(tmp_path, "x,A,LUAD,gone/x.h5", header="slide_id,case_id,label,feature_path")
    with pytest.raises(CohortError, match=r"\(first: x, its feature_path .*gone.x\.h5 is no file;"):
        Cohort.read(tmp_path / "features", rows, cache=False)


def test_a_patient_in_two_splits_is_named(tmp_path: Path) -> None:
    rows = [*ROWS[:2], "03,A,LUAD,test", ROWS[3]]
    with pytest.raises(CohortError, match="A"):
        Cohort.read(folder(tmp_path, NAMES), table(tmp_path, *rows), cache=False)


def test_a_label_outside_the_classes(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match="LUSC"):
        Cohort.read(
            folder(tmp_path, NAMES), table(tmp_path, *ROWS), classes=["LUAD", "other"], cache=False
        )


def test_classes_keep_the_order_of_the_model(tmp_path: Path) -> None:
    cohort = Cohort.read(
        folder(tmp_path, NAMES), table(tmp_path, *ROWS), classes=["LUSC", "LUAD"], cache=False
    )
    assert cohort.target("01") == 0


def test_unknown_slide_and_empty_split(tmp_path: Path) -> None:
    cohort = Cohort.read(folder(tmp_path, NAMES), table(tmp_path, *ROWS), cache=False)
    with pytest.raises(CohortError, match="77: is not in the cohort"):
        cohort.bag("77")
    with pytest.raises(CohortError, match=r"split 'val': has no slides \(splits: test, train\)"):
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


def test_opening_ten_thousand_slides_reads_no_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = tmp_path / "features"
    features.mkdir()
    for i in range(10_000):
        (features / f"{i:05d}.h5").touch()
    monkeypatch.setattr("foci.bags.store.read_bag", lambda *a, **k: pytest.fail("read a bag"))
    rows = [f"{i:05d},{i:05d},{'ab'[i % 2]}" for i in range(10_000)]
    cohort = Cohort.read(
        features, table(tmp_path, *rows, header="slide_id,case_id,label"), cache=False
    )
    assert len(cohort) == 10_000


def test_repr_is_one_short_line(tmp_path: Path) -> None:
    rows = [*ROWS, "05,D,LUAD,train"]
    cohort = Cohort.read(folder(tmp_path, NAMES), table(tmp_path, *rows), cache=False)
    assert repr(cohort) == (
        "Cohort(4 slides; 3 patients; classes: LUAD 2, LUSC 2; splits: train 2, test 2; 1 skipped)"
    )
    bare = Cohort.read(folder(tmp_path, NAMES), cache=False)
    assert repr(bare) == ("Cohort(4 slides; 4 patients; classes: unlabelled 4; splits: none)")
    large = replace(cohort, slides=cohort.slides * 500)
    assert len(repr(large)) < 120
