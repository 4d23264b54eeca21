"""Training is deterministic, resumes exactly, and keeps the best epoch."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from foci import Cohort, backbones
from foci.backbones import Backbone
from foci.backbones.training import EpochReport, TrainingRecipe, predict, train
from foci.backbones.training.loop import run_key
from tests.backbones.every import EVERY, small
from tests.backbones.training.toy_cohort import D_IN, toy_cohort

RECIPE = TrainingRecipe(epochs=3, lr=3e-3, batch_size=2, seed=5)
PAPER = [name for name, preset in EVERY if preset == "paper"]


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    return toy_cohort(tmp_path_factory.mktemp("toy"))


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
    history = train(
        model,
        cohort.split("train"),
        cohort.split("val"),
        RECIPE,
        state_file=state,
        report=report,
    )
    return backbones.fingerprint(model), history


@pytest.mark.parametrize("name", PAPER)
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


def test_another_seed_other_weights(cohort: Cohort) -> None:
    first, second = fresh("abmil"), fresh("abmil")
    for model, seed in ((first, 0), (second, 1)):
        recipe = RECIPE.model_copy(update={"seed": seed})
        train(model, cohort.split("train"), cohort.split("val"), recipe)
    assert backbones.fingerprint(first) != backbones.fingerprint(second)


def test_the_best_validation_epoch_is_kept(cohort: Cohort) -> None:
    model = fresh("abmil")
    recipe = TrainingRecipe(epochs=12, lr=0.05, schedule="constant", seed=0)
    history = train(model, cohort.split("train"), cohort.split("val"), recipe)
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
    history = train(model, cohort.split("train"), cohort.split("val"), recipe, state_file=state)
    plain = fresh("abmil")
    assert train(plain, cohort.split("train"), cohort.split("val"), recipe) == history
    assert backbones.fingerprint(plain) == backbones.fingerprint(model)


def test_a_damaged_state_starts_over(cohort: Cohort, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_bytes(b"half a file")
    assert run("abmil", cohort, state)[0] == run("abmil", cohort)[0]


def test_key_names_everything_that_matters(cohort: Cohort) -> None:
    model = fresh("abmil")
    parts = cohort.split("train"), cohort.split("val")
    key = run_key(model, *parts, RECIPE)
    assert key == run_key(fresh("abmil"), *parts, RECIPE)
    assert key != run_key(model, *parts, RECIPE.model_copy(update={"seed": 6}))
    assert key != run_key(model, parts[1], parts[0], RECIPE)
    assert key != run_key(fresh("mhim-mil"), *parts, RECIPE)


@pytest.mark.parametrize("name", ["abmil", "acmil"])
def test_it_learns(name: str, cohort: Cohort) -> None:
    model = fresh(name)
    recipe = TrainingRecipe(epochs=15, lr=5e-3)
    train(model, cohort.split("train"), cohort.split("val"), recipe)
    assert predict(model, cohort.split("test")).accuracy >= 0.8
