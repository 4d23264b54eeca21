"""Which slides train and which choose the epoch, where the table leaves it open."""

from dataclasses import replace
from pathlib import Path

import pytest

from foci import Cohort
from foci.backbones.training.run import with_train_and_val
from foci.errors import CohortError
from tests.backbones.training.toy_cohort import toy_cohort


def splits(cohort: Cohort, change: dict[str, str | None]) -> Cohort:
    slides = tuple(replace(s, split=change.get(s.split or "", s.split)) for s in cohort)
    return replace(cohort, slides=slides)


def test_complete_splits_are_left_alone(tmp_path: Path) -> None:
    cohort = toy_cohort(tmp_path)
    assert with_train_and_val(cohort) is cohort


def test_validation_comes_out_of_train_alone(tmp_path: Path) -> None:
    cohort = splits(toy_cohort(tmp_path, n=40), {"val": "train"})
    got = with_train_and_val(cohort)
    assert got.split("test").slides == cohort.split("test").slides
    assert len(got.split("train")) + len(got.split("val")) == len(cohort.split("train"))
    assert got.notes[-1].startswith(f"no 'val' split: {len(got.split('val'))} slides taken")


def test_no_splits_at_all_and_no_train(tmp_path: Path) -> None:
    cohort = toy_cohort(tmp_path, n=40)
    bare = splits(cohort, {"train": None, "val": None, "test": None})
    assert {s.split for s in with_train_and_val(bare)} == {"train", "val", "test"}
    with pytest.raises(CohortError, match="has no slides in split 'train'"):
        with_train_and_val(splits(cohort, {"train": "test"}))
