"""Which slides train and which choose the epoch; what is written when scoring fails."""

import json
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from foci import Cohort, backbones
from foci.backbones.saved import read_record
from foci.backbones.training import Predictions, TrainingRecipe
from foci.backbones.training.run import train_into, trainable, with_train_and_val
from foci.errors import CohortError, FociError
from tests.makers.cohorts import toy_cohort

RECIPE = TrainingRecipe(epochs=1)
SMALL = {"d": 8, "hidden": 4}


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


def test_slides_without_label_or_split_are_left_out_and_said(tmp_path: Path) -> None:
    cohort = toy_cohort(tmp_path)
    assert trainable(cohort) == cohort
    gaps = [replace(s, label=None) for s in cohort.slides[:2]]
    gaps += [replace(s, split=None) for s in cohort.slides[2:5]]
    got = trainable(replace(cohort, slides=(*gaps, *cohort.slides[5:]), notes=("before",)))
    assert got.slides == cohort.slides[5:]
    assert got.notes == (
        "before",
        "left out: 2 slides without a label",
        "left out: 3 slides in no split",
    )
    bare = replace(cohort, slides=tuple(replace(s, label=None) for s in cohort))
    with pytest.raises(CohortError, match="labels: has no slide with a label; fill the label"):
        trainable(bare)


def test_a_score_that_fails_does_not_cost_the_weights(tmp_path: Path) -> None:
    cohort = replace(toy_cohort(tmp_path), notes=("an assumption",))
    sizes = []

    def score(predictions: Predictions) -> dict[str, float]:
        sizes.append(len(predictions.labels))
        if len(sizes) == 2:
            raise KeyError("threshold")
        if len(sizes) == 3:
            raise FociError("labels", "lacks class 2", "AUC needs\nslides of every class")
        return {"accuracy": predictions.accuracy}

    done = train_into(tmp_path / "m", "abmil", cohort, RECIPE, widths=SMALL, score=score)
    assert sizes == [12, 6, 6]
    assert done.notes == (
        "split val has no scores (KeyError: 'threshold')",
        "split test has no scores (FociError: labels: lacks class 2; AUC needs slides of every "
        "class)",
    )
    facts = json.loads((tmp_path / "m" / "backbone.json").read_text())
    assert set(facts["metrics"]) == {"train"}
    assert facts["notes"] == ["an assumption", *done.notes]
    assert facts["slides"] == {"train": 12, "val": 6, "test": 6}
    assert facts["trained_on"] == [f"s{i:02d}" for i in range(12)]
    kept = backbones.load(tmp_path / "m")
    assert backbones.fingerprint(kept) == backbones.fingerprint(done.backbone)
    assert not (tmp_path / "m" / "training.safetensors").exists()


def test_the_folder_says_which_features_it_was_trained_on(tmp_path: Path) -> None:
    cohort = toy_cohort(tmp_path)
    train_into(tmp_path / "m", "abmil", cohort, RECIPE, widths=SMALL)
    record = read_record(tmp_path / "m")
    assert record.data is not None
    assert record.data.width == 8
    assert record.data.encoders == {"uni_v2": 12}
    assert record.data.layouts == {"trident": 12}
    assert record.data.tile_sizes == {"256 px": 12}
    bags = {bag.slide_id: bag.fingerprint() for bag in cohort.split("train").bags()}
    assert record.data.fingerprints == bags
    tiles = [bag.features.astype(float) for bag in cohort.split("train").bags()]
    norms = [np.median(np.sqrt((x**2).sum(axis=1))) for x in tiles]
    for found, own in (
        (record.data.feature_norm, norms),
        (record.data.feature_mean, [x.mean() for x in tiles]),
    ):
        assert found is not None
        expected = [np.quantile(own, q) for q in (0.25, 0.5, 0.75)]
        np.testing.assert_allclose([found.low, found.median, found.high], expected, rtol=1e-5)
    assert (record.n_cap, record.classes) == (cohort.store.n_cap, ("a", "b"))
    assert record.test_score("accuracy") == record.metrics["test"]["accuracy"]
    assert record.test_score("auc") is None


def test_features_of_several_encoders_are_said(tmp_path: Path) -> None:
    cohort = toy_cohort(tmp_path)
    with h5py.File(tmp_path / "features" / "s03.h5", "r+") as file:
        file["features"].attrs["encoder"] = "conch"
    done = train_into(tmp_path / "m", "abmil", cohort, RECIPE, widths=SMALL)
    says = "trained on features of several encoders (11 uni_v2, 1 conch)"
    assert done.notes == (says,)
    assert read_record(tmp_path / "m").notes == [says]


def test_an_undefined_score_is_null(tmp_path: Path) -> None:
    done = train_into(
        tmp_path / "m", "abmil", toy_cohort(tmp_path), RECIPE, widths=SMALL,
        score=lambda predictions: {"auc": None},
    )  # fmt: skip
    assert done.notes == ()
    facts = json.loads((tmp_path / "m" / "backbone.json").read_text())
    assert facts["metrics"] == {split: {"auc": None} for split in ("train", "val", "test")}


def test_impossible_widths_leave_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FociError, match="d: cannot be -3; Input should be greater than 0"):
        train_into(tmp_path / "m", "abmil", toy_cohort(tmp_path), RECIPE, widths={"d": -3})
    assert not (tmp_path / "m").exists()
