"""What an interrupted fit leaves, and what a second one makes of it."""

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from foci import selectors
from foci.bags import Cohort
from foci.errors import FociError
from foci.selectors import FitEpoch, FittedSelector, Selector
from foci.selectors.fitting import STATE
from tests.backbones.every import small
from tests.makers import features as write
from tests.makers.cohorts import D, planted
from tests.makers.fits import judge_by, per_class, same, short


class KilledError(Exception):
    pass


def killed_after(number: int) -> Any:
    def report(epoch: FitEpoch) -> None:
        if epoch.epoch == number:
            raise KilledError

    return report


def fit_twice(first: dict[str, Any], second: dict[str, Any], out: Path) -> list[int]:
    """Kill one fit after two of three epochs; which epochs another one then goes through."""
    given = {"backbone": small("abmil", "paper", 2), "recipe": per_class(3), "out": out}
    with pytest.raises(KilledError):
        selectors.fit(**{**given, **first}, report=killed_after(2))
    assert (out / STATE).exists()
    seen: list[int] = []
    selectors.fit(**{**given, **second}, report=lambda epoch: seen.append(epoch.epoch))
    return seen


@pytest.mark.parametrize(
    "second",
    [
        {"recipe": per_class(3, **{"weights.suff": 0.25})},
        {"target": "prediction"},
        {"backbone": small("abmil", "official", 2)},
        {"criterion": "loss"},
        {"criterion": "decisive"},
    ],
)
def test_another_fit_starts_anew(second: dict[str, Any], cohort: Cohort, tmp_path: Path) -> None:
    first = {"cohort": cohort, "criterion": "aukc"}
    assert fit_twice(first, {**first, **second}, tmp_path) == [1, 2, 3]


def test_the_same_fit_goes_on(cohort: Cohort, tmp_path: Path) -> None:
    first = {"cohort": cohort, "criterion": "loss"}
    assert fit_twice(first, {**first, "memory_gb": 0.0}, tmp_path) == [3]


def test_other_features_under_the_same_names_start_anew(tmp_path: Path) -> None:
    before = planted(tmp_path)
    paths = [slide.feature_path for slide in before.split("val")]
    lengths = [len(before.bag(slide.slide_id)) for slide in before.split("val")]
    folder, table, rng = tmp_path / "features", tmp_path / "labels.csv", np.random.default_rng(1)
    model, plan = small("abmil", "paper", 2), per_class(3)
    with pytest.raises(KilledError):
        selectors.fit(model, before, plan, out=tmp_path / "out", report=killed_after(2))
    for path, n in zip(paths, lengths, strict=True):
        assert path is not None
        size, time = path.stat().st_size, path.stat().st_mtime_ns
        write.trident(path, rng.standard_normal((n, D)).astype(np.float32), write.grid(n))
        os.utime(path, ns=(time, time + 10_000_000))
        assert path.stat().st_size == size
    after = Cohort.read(folder, table, cache=False)
    seen: list[int] = []
    fitted = selectors.fit(
        model, after, plan, out=tmp_path / "out", report=lambda epoch: seen.append(epoch.epoch)
    )
    assert seen == [1, 2, 3]
    assert fitted.history == selectors.fit(model, after, plan).history


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_voided_fit_leaves_nothing_to_resume(
    at: int, cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit is found before the state of its epoch is written."""
    calls: list[int] = []

    def edits(selector: Selector) -> float:
        calls.append(1)
        if len(calls) == at:
            for parameter in selector.backbone.parameters():
                parameter.mul_(1.5)
        return 0.0

    def fit(**more: Any) -> FittedSelector:
        return selectors.fit(small("transmil", "paper", 2), cohort, short("paper-ste", 3), **more)

    judge_by(monkeypatch, lambda selector: 0.0)
    clean = fit()
    judge_by(monkeypatch, edits)
    seen: list[int] = []
    with pytest.raises(FociError, match="changed while it was read out"):
        fit(out=tmp_path, report=lambda epoch: seen.append(epoch.epoch))
    assert list(tmp_path.iterdir()) == []
    assert seen == list(range(1, at))
    judge_by(monkeypatch, lambda selector: 0.0)
    again = fit(out=tmp_path)
    assert same(again.best, clean.best)
    assert again.history == clean.history


def test_an_edit_after_the_last_epoch_voids_the_fit_too(cohort: Cohort, tmp_path: Path) -> None:
    model, plan = small("abmil", "paper", 2), short("paper-ste", 1)

    def report(epoch: FitEpoch) -> None:
        assert (tmp_path / STATE).exists()
        next(model.parameters()).mul_(1.5)

    with pytest.raises(FociError, match="changed while it was read out"):
        selectors.fit(model, cohort, plan, out=tmp_path, report=report)
    assert list(tmp_path.iterdir()) == []


def test_losses_that_are_not_finite_end_the_fit(cohort: Cohort, tmp_path: Path) -> None:
    plan = per_class(3, **{"schedule.peak": 1e30})
    message = r"^selector paper-ste \(.*\), epoch 1: the training loss is nan; lower schedule.peak "
    with pytest.raises(FociError, match=message + r"\(it is 1e\+30\)$"):
        selectors.fit(small("abmil", "paper", 2), cohort, plan, out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_half_precision_is_called_the_cause_where_it_is(cohort: Cohort) -> None:
    model = small("abmil", "paper", 2).half()
    with pytest.raises(FociError, match=r"epoch 1: the .*; fit it on the backbone in float32"):
        selectors.fit(model, cohort, per_class(2))


@pytest.mark.parametrize("name", ["abmil", "transmil"])
def test_weights_that_are_not_finite_end_the_fit(name: str, cohort: Cohort) -> None:
    """In the only step of the epoch: the training loss was still finite."""
    changes = {"schedule.peak": 1e30, "schedule.batch_size": 64, "weights.contig": 0.0}
    plan = per_class(1, **changes, **{"schedule.warmup": 0, "schedule.weight_decay": 1e30})
    with pytest.raises(
        FociError, match=r"epoch 1: the weights are not finite; lower schedule.peak"
    ):
        selectors.fit(small(name, "paper", 2), cohort, plan)


def test_a_validation_loss_that_is_not_finite_ends_the_fit(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foci.selectors.loop.validate", lambda fit: (math.inf, {}))
    with pytest.raises(
        FociError, match=r"epoch 1: the validation loss is inf; lower schedule.peak"
    ):
        selectors.fit(small("abmil", "paper", 2), cohort, per_class())


@pytest.mark.parametrize("run", ["{}", "[]", '"text"', "3"])
def test_a_state_that_is_no_fits_is_named(run: str, cohort: Cohort, tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / STATE, {"run": run})
    with pytest.raises(FociError, match=rf"{STATE}: is not the state of a fit .*; remove it"):
        selectors.fit(small("abmil", "paper", 2), cohort, per_class(), out=tmp_path)


def test_half_written_files_are_cleaned_up(cohort: Cohort, tmp_path: Path) -> None:
    for name in (".writing-abc", "mine.txt"):
        (tmp_path / name).write_bytes(b"half")
    selectors.fit(small("abmil", "paper", 2), cohort, per_class(1), out=tmp_path)
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {"selector.json", "selector.safetensors", "mine.txt"}


def test_a_fit_from_evidence_ends_with_the_same_bytes(cohort: Cohort, tmp_path: Path) -> None:
    model, plan = small("transmil", "paper", 2), short("tuned", 3)
    whole = selectors.fit(model, cohort, plan, out=tmp_path / "whole")
    with pytest.raises(KilledError):
        selectors.fit(model, cohort, plan, out=tmp_path / "parts", report=killed_after(2))
    again = selectors.fit(model, cohort, plan, out=tmp_path / "parts")
    assert again.history == whole.history
    for file in ("selector.safetensors", "selector.json"):
        assert (tmp_path / "parts" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
