"""Which slides are fitted on, audited or left out."""

from dataclasses import replace
from pathlib import Path

import pytest

from foci.audits.prepare import SplitSlides, check_splits, split_slides
from foci.backbones.training.run import with_train_and_val
from foci.bags import Cohort
from foci.errors import CohortError
from tests.makers.audits import settings
from tests.makers.cohorts import make_files, read


def split_up(cohort: Cohort, split_seed: int = 0, **changes: object) -> SplitSlides:
    return split_slides(cohort, settings(**changes), split_seed)


def names(cohort: Cohort | None, split: str | None = None) -> list[str]:
    return [s.slide_id for s in cohort or () if split is None or s.split == split]


def test_splits_of_the_table(files: Path) -> None:
    found = split_up(read(files))
    assert names(found.fitting, "train") == [f"s{i:02d}" for i in range(6)]
    assert names(found.fitting, "val") == ["s06", "s07", "s08"]
    assert names(found.audited) == ["s09", "s10", "s11", "s12", "s13"]
    assert (found.count("train"), found.count("val"), found.skipped) == (6, 3, ())


def test_bad_training_slides_are_set_aside_and_audited_ones_not_read(files: Path) -> None:
    for name in ("s02", "s08", "s10"):
        (files / "features" / f"{name}.h5").write_bytes(b"cut")
    found = split_up(read(files))
    assert (found.count("train"), found.count("val")) == (5, 2)
    assert [s.slide_id for s in found.skipped] == ["s02", "s08"]
    assert all("is not an HDF5 file" in str(s.skipped) for s in found.skipped)
    assert (found.skipped[0].case_id, found.skipped[0].label) == ("c2", "a")
    assert "s10" in names(found.audited)


def test_no_splits_are_made_as_foci_train_makes_them(tmp_path: Path) -> None:
    make_files(tmp_path, splits="")
    (tmp_path / "features" / "s03.h5").write_bytes(b"cut")
    trained = with_train_and_val(read(tmp_path).readable(), 5)
    found = split_up(read(tmp_path), split_seed=5)
    assert names(found.audited) == names(trained.split("test"))
    assert names(found.fitting, "train") == names(trained.split("train"))
    assert [s.slide_id for s in found.skipped] == ["s03"]
    assert (
        "divided by patient into train, val and test (70, 10 and 20 %, seed 5)" in found.notes[-1]
    )


def test_val_is_taken_out_of_train(tmp_path: Path) -> None:
    make_files(tmp_path, splits="train test")
    found = split_up(read(tmp_path))
    assert found.count("train") + found.count("val") == 6
    assert found.count("val") == 1
    assert any("taken out of 'train'" in note for note in found.notes)
    assert "left out: 3 slides in no split" in found.notes


def test_without_a_selector_nothing_is_fitted(files: Path) -> None:
    found = split_up(read(files), rankings=("native",))
    assert found.fitting is None
    assert (len(found.audited), found.count("train")) == (5, 0)
    assert names(split_up(read(files), rankings=("native",), split="val").audited) == [
        "s06", "s07", "s08",
    ]  # fmt: skip


def test_slides_of_other_splits_are_not_lost_in_silence(files: Path) -> None:
    odd = ("s09", "s11", "s13")
    slides = [replace(s, split="holdout") if s.slide_id in odd else s for s in read(files)]
    cohort = replace(read(files), slides=tuple(slides))
    for rankings in (("native",), ("selector",)):
        found = split_up(cohort, rankings=rankings)
        assert found.notes[-1] == "left out: 3 slides in split holdout"
        assert names(found.audited) == ["s10", "s12"]


def test_without_splits_and_selector_every_slide_is_audited(files: Path) -> None:
    found = split_up(read(files, labels=False), rankings=("native", "random"))
    assert len(found.audited) == 14
    assert "every slide is audited" in found.notes[-1]


def test_rows_without_features_are_listed(files: Path) -> None:
    (files / "features" / "s12.h5").unlink()
    (found,) = split_up(read(files)).skipped
    assert (found.slide_id, found.skipped) == ("s12", "no feature file of this name")


def test_splits_that_cannot_be_used(files: Path) -> None:
    only_test = replace(read(files), slides=read(files).split("test").slides)
    with pytest.raises(CohortError, match="has no slides in split 'train', which the selector is"):
        check_splits(only_test, settings())
    check_splits(only_test, settings(rankings=("native",)))
    for cohort in (read(files), read(files, labels=False)):
        check_splits(cohort, settings())
        with pytest.raises(CohortError, match="split 'holdout': has no slides"):
            check_splits(cohort, settings(split="holdout"))
    check_splits(read(files, labels=False), settings(rankings=("native",), split="holdout"))


def test_nothing_to_fit_on(files: Path) -> None:
    for path in (files / "features").glob("s0*.h5"):
        path.write_bytes(b"")
    with pytest.raises(CohortError, match="cohort: no slide can be read"):
        split_up(read(files))
