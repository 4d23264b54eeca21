"""Training is deterministic, resumes exactly, and keeps the best epoch; batches and predictions."""

import os
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from foci import Bag, Cohort, backbones
from foci.backbones import Backbone, Batch
from foci.backbones.training import EpochReport, Predictions, TrainingRecipe, loop, predict, train
from foci.backbones.training.loop import batch_of, epoch_order, run_key, stride
from foci.bags import Slide
from foci.bags.store import BagStore
from foci.errors import FociError
from tests.backbones.every import small
from tests.makers.cohorts import D_IN, toy_cohort
from tests.makers.features import contour_grid

RECIPE = TrainingRecipe(epochs=3, lr=3e-3, batch_size=2, seed=5)
KINDS = ["abmil", "asmil", "attrimil", "mhim-mil"]
"""No state in the objective, an EMA in the model, queues, and two stages with a teacher."""


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    return toy_cohort(tmp_path_factory.mktemp("toy"))


def parts(cohort: Cohort) -> tuple[Cohort, Cohort]:
    return cohort.split("train"), cohort.split("val")


def fresh(name: str) -> Backbone:
    config = small(name, "paper", 2).config
    torch.manual_seed(1)
    return backbones.ARCHITECTURES[small(name, "paper", 2).architecture](**{**config, "d_in": D_IN})


class Killed(Exception):  # noqa: N818
    pass


@dataclass
class KillAfter:
    epochs: int

    def __call__(self, epoch: EpochReport) -> None:
        self.epochs -= 1
        if self.epochs == 0:
            raise Killed


def run(name: str, cohort: Cohort, state: Path | None = None, report=lambda epoch: None):  # type: ignore[no-untyped-def]
    model = fresh(name)
    history = train(model, *parts(cohort), RECIPE, state_file=state, report=report)
    return backbones.fingerprint(model), history


@pytest.mark.parametrize("name", KINDS)
def test_same_seed_same_bytes_also_after_kills(name: str, cohort: Cohort, tmp_path: Path) -> None:
    want, whole = run(name, cohort)
    state = tmp_path / "state"
    for _ in range(2 * RECIPE.epochs):
        try:
            got, history = run(name, cohort, state, KillAfter(1))
            break
        except Killed:
            continue
    got, history = run(name, cohort, state)
    assert got == want
    assert history == whole
    assert len(whole) == RECIPE.epochs * (2 if name == "mhim-mil" else 1)


def test_an_epoch_is_cut_into_batches(cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, original = [], loop.batch_of

    def batch_of(slides: Cohort, some: list[Slide], task: None) -> Batch:
        seen.append(some)
        return original(slides, some, task)

    monkeypatch.setattr("foci.backbones.training.loop.batch_of", batch_of)
    train(fresh("abmil"), *parts(cohort), TrainingRecipe(epochs=1, batch_size=5))
    assert [len(batch) for batch in seen] == [5, 5, 2]
    assert {slide for batch in seen for slide in batch} == set(cohort.split("train").slides)


def test_another_seed_other_weights(cohort: Cohort) -> None:
    first, second = fresh("abmil"), fresh("abmil")
    for model, seed in ((first, 0), (second, 1)):
        recipe = RECIPE.model_copy(update={"seed": seed})
        train(model, *parts(cohort), recipe)
    assert backbones.fingerprint(first) != backbones.fingerprint(second)


def test_the_best_validation_epoch_is_kept(cohort: Cohort) -> None:
    model = fresh("abmil")
    recipe = TrainingRecipe(epochs=12, lr=0.05, schedule="constant", seed=0)
    history = train(model, *parts(cohort), recipe)
    losses = [epoch.val_loss for epoch in history]
    assert min(losses) < losses[-1]
    assert predict(model, cohort.split("val")).loss == pytest.approx(min(losses), abs=1e-12)
    best = [epoch.epoch for epoch in history if epoch.best]
    assert losses[best[-1] - 1] == min(losses)


def test_a_state_of_another_run_is_not_resumed(cohort: Cohort, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with pytest.raises(Killed):
        run("abmil", cohort, state, KillAfter(1))
    model = fresh("abmil")
    recipe = RECIPE.model_copy(update={"lr": 1e-3})
    history = train(model, *parts(cohort), recipe, state_file=state)
    plain = fresh("abmil")
    assert train(plain, *parts(cohort), recipe) == history
    assert backbones.fingerprint(plain) == backbones.fingerprint(model)


def test_a_damaged_state_starts_over(cohort: Cohort, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_bytes(b"half a file")
    assert run("abmil", cohort, state)[0] == run("abmil", cohort)[0]


def test_key_names_everything_that_matters(cohort: Cohort, tmp_path: Path) -> None:
    model, (train, val) = fresh("abmil"), parts(cohort)
    key = run_key(model, train, val, RECIPE)
    assert key == run_key(fresh("abmil"), train, val, RECIPE)
    new_train, new_val = parts(toy_cohort(tmp_path, seed=1))
    relabelled = replace(train.slides[0], label="b")
    for changed in (
        (model, train, val, RECIPE.model_copy(update={"seed": 6})),
        (model, val, train, RECIPE),
        (fresh("mhim-mil"), train, val, RECIPE),
        (model, new_train, val, RECIPE),
        (model, train, new_val, RECIPE),
        (model, replace(train, classes=("b", "a")), val, RECIPE),
        (model, replace(train, slides=(relabelled, *train.slides[1:])), val, RECIPE),
    ):
        assert key != run_key(*changed)


def test_key_names_how_features_are_read(cohort: Cohort) -> None:
    def key(store: BagStore) -> str:
        train, val = (replace(part, store=store) for part in parts(cohort))
        return run_key(fresh("abmil"), train, val, RECIPE)

    assert key(BagStore(n_cap=1024)) == run_key(fresh("abmil"), *parts(cohort), RECIPE)
    for store in (BagStore(n_cap=8), BagStore(layout="trident"), BagStore(mpp=0.5)):
        assert key(store) != key(BagStore())


@pytest.mark.parametrize("split", ["train", "val"])
def test_key_names_the_feature_files_and_not_their_folder(split: str, tmp_path: Path) -> None:
    cohort = toy_cohort(tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there", copy_function=shutil.copy2)

    def key(folder: str) -> str:
        read = Cohort.read(tmp_path / folder / "features", tmp_path / folder / "labels.csv")
        return run_key(fresh("abmil"), *parts(read), RECIPE)

    assert key("there") == key("here")
    slide = cohort.split(split).slides[-1].slide_id
    file = tmp_path / "there" / "features" / f"{slide}.h5"
    before = file.stat()
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    changed = key("there")
    assert changed != key("here")
    with file.open("ab") as end:
        end.write(b"0")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert key("there") not in (changed, key("here"))


def test_key_does_not_name_features_that_are_only_tested(tmp_path: Path) -> None:
    cohort = toy_cohort(tmp_path)
    key = run_key(fresh("abmil"), *parts(cohort), RECIPE)
    os.utime(tmp_path / "features" / f"{cohort.split('test').slides[0].slide_id}.h5", ns=(1, 1))
    assert run_key(fresh("abmil"), *parts(cohort), RECIPE) == key


def test_a_run_that_diverges_says_when_and_what_to_do(cohort: Cohort, tmp_path: Path) -> None:
    recipe = TrainingRecipe(epochs=3, lr=1e3)
    seen: list[EpochReport] = []
    with pytest.raises(FociError) as refused:
        train(fresh("attrimil"), *parts(cohort), recipe, report=seen.append)
    says = "attrimil, train epoch 1: the training loss is nan; lower --lr (it is 1000)"
    assert str(refused.value) == says
    assert seen == []


class Poisoned(type(small("abmil", "paper", 2))):  # type: ignore[misc]
    """Finite while it trains, and from some epoch on NaN when it is asked."""

    good = 1

    def predict(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        self.asked = getattr(self, "asked", 0) + 1
        probabilities: torch.Tensor = super().predict(x, mask)
        return probabilities if self.asked <= self.good else probabilities * np.nan


def test_a_validation_loss_that_is_not_finite_ends_the_run(cohort: Cohort, tmp_path: Path) -> None:
    state, seen = tmp_path / "state", []
    for _ in range(2):  # started again it stops at the same place
        model = Poisoned(**fresh("abmil").config)
        model.good = len(cohort.split("val")) * (0 if seen else 1)
        with pytest.raises(FociError) as refused:
            train(model, *parts(cohort), RECIPE, state_file=state, report=seen.append)
        says = "abmil, train epoch 2: the validation loss is nan; lower --lr (it is 0.003)"
        assert str(refused.value) == says
    assert [epoch.epoch for epoch in seen] == [1]


def test_an_objective_is_checked_before_it_is_made(cohort: Cohort) -> None:
    recipe = TrainingRecipe(epochs=1, objective={"subtyping": "maybe"})
    with pytest.raises(FociError) as refused:
        train(fresh("clam-sb"), *parts(cohort), recipe)
    says = "subtyping: cannot be 'maybe'; Input should be a valid boolean"
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize("name", ["abmil", "acmil"])
def test_it_learns(name: str, cohort: Cohort) -> None:
    model = fresh(name)
    recipe = TrainingRecipe(epochs=15, lr=5e-3)
    train(model, *parts(cohort), recipe)
    assert predict(model, cohort.split("test")).accuracy >= 0.8


def test_an_epoch_sees_every_slide_once() -> None:
    slides = [Slide(str(i), str(i), "a") for i in range(30)]
    order = epoch_order(slides, balanced=False, rng=np.random.default_rng(0))
    assert order != slides
    assert sorted(order, key=lambda s: int(s.slide_id)) == slides


def test_balanced_draws_classes_equally_often() -> None:
    slides = [Slide(str(i), str(i), "rare" if i < 5 else "common") for i in range(2000)]
    drawn = epoch_order(slides, balanced=True, rng=np.random.default_rng(0))
    counts = Counter(s.label for s in drawn)
    assert len(drawn) == 2000
    assert abs(counts["rare"] - 1000) < 100


def test_batches_are_padded_and_labelled(cohort: Cohort) -> None:
    first = batch_of(cohort, cohort.slides[:2])
    assert first.labels.tolist() == [0, 1]
    assert first.mask.sum(1).tolist() == [9, 8]
    assert first.coords is not None
    assert first.strides is not None
    assert first.strides.tolist() == [256, 256]
    torch.testing.assert_close(first.features[1, :8], cohort.bag("s01").x)
    assert first.features[1, 8].abs().sum() == 0


def test_stride_is_the_spacing_and_else_the_tile_size() -> None:
    x = np.ones((12, 2), np.float32)
    assert stride(Bag("s", x, contour_grid(512), patch_size=600)) == 512
    lone = Bag("s", x[:1], np.array([[5, 7]]), patch_size=300)
    assert stride(lone) == 300


def test_loss_and_accuracy_by_hand() -> None:
    seen = Predictions(
        ("a", "b"), np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([1, 1], dtype=np.int64)
    )
    assert seen.loss == pytest.approx(-(np.log(0.75) + np.log(0.5)) / 2)
    assert seen.accuracy == 0.5


def test_a_certain_mistake_is_finite() -> None:
    seen = Predictions(("a",), np.array([[1.0, 0.0]]), np.array([1], dtype=np.int64))
    assert np.isfinite(seen.loss)


def test_predicts_in_eval_mode_and_gives_the_mode_back(cohort: Cohort) -> None:
    model = backbones.create("abmil", d_in=D_IN, n_classes=2, d=8, hidden=4, dropout=0.9).train()
    first, second = predict(model, cohort), predict(model, cohort)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert model.training
    assert first.slide_ids == tuple(slide.slide_id for slide in cohort)
    assert first.labels.tolist() == [i % 2 for i in range(len(cohort))]
