"""From paths to a model and a cohort."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from foci import backbones
from foci.audits.settings import read_configuration
from foci.audits.sources import Sources, open_sources
from foci.backbones import fingerprint
from foci.backbones.checkpoints import inspect
from foci.errors import FociError
from tests.backbones.checkpoints.official_files import OFFICIAL
from tests.makers.audits import model


def opened(files: Path, path: str, **more: Any) -> Sources:
    places = {"model": files / path, "features": files / "features", "out": files / "out"}
    inputs = read_configuration(None, {**places, **more}, {})
    return open_sources(inputs.model, inputs, **inputs.opening, device="cpu")


def save(files: Path, **facts: Any) -> Path:
    facts = {"classes": ["b", "a"], "n_cap": 9, "recipe": {"seed": 7}, **facts}
    return backbones.save(model(), files / "abmil-small", **facts)


@pytest.mark.parametrize("path", ["abmil-small", "abmil-small/weights.safetensors"])
def test_the_model_folder_says_classes_cap_and_seed(files: Path, path: str) -> None:
    save(files, trained_on=["s00", "s01"])
    found = opened(files, path, labels=files / "labels.csv")
    assert found.trained_on == {"s00", "s01"}
    assert fingerprint(found.backbone) == fingerprint(model())
    assert found.cohort.classes == ("b", "a")
    assert found.cohort.store.n_cap == 9
    assert (found.name, found.split_seed, found.model_notes) == ("abmil-small", 7, ())
    assert found.places["labels"] == str((files / "labels.csv").resolve())
    assert "kappa" not in found.places
    assert inspect(files / path).record.n_cap == 9


def test_the_configuration_wins(files: Path) -> None:
    save(files)
    found = opened(files, "abmil-small", labels=files / "labels.csv", n_cap=4, split_seed=1)
    assert (found.cohort.store.n_cap, found.split_seed) == (4, 1)
    assert found.alarms == ()


def test_the_model_keeps_its_own_order_of_classes(files: Path) -> None:
    save(files)
    given = {"labels": files / "labels.csv", "classes": ["a", "b"]}
    found = opened(files, "abmil-small", **given)
    assert found.cohort.classes == ("b", "a")
    (alarm,) = found.alarms
    assert alarm.kind == "class order"
    assert "given in the order a, b; the model was trained with b, a" in alarm.sentence
    assert found.places["classes"] == "a,b"
    with pytest.raises(FociError, match="classes: are a, c, but the model was trained on b, a; le"):
        opened(files, "abmil-small", **given | {"classes": ["a", "c"]})


def test_labels_are_checked_but_one_class_is_enough(files: Path) -> None:
    save(files)
    table = files / "labels.csv"
    text = table.read_text()
    table.write_text(text.replace(",b,test", ",a,test"))
    assert opened(files, "abmil-small", labels=table).cohort.classes == ("b", "a")
    table.write_text(text.replace(",b,test", ",c,test"))
    with pytest.raises(FociError, match="slide s09: has the label 'c', not one of b, a; correct"):
        opened(files, "abmil-small", labels=table)


def test_without_labels(files: Path) -> None:
    save(files)
    found = opened(files, "abmil-small")
    assert (found.cohort.classes, len(found.cohort)) == (("b", "a"), 14)


def test_a_foreign_checkpoint_says_what_was_assumed(files: Path) -> None:
    official = OFFICIAL["mhim-v1-gated"]
    torch.save(official.state(official.model()), files / "checkpoint-best.pt")
    found = opened(files, "checkpoint-best.pt", labels=files / "labels.csv")
    assert (found.backbone.architecture, found.name) == ("mhim", "checkpoint-best")
    assert any("activation=" in note for note in found.model_notes)
    assert found.cohort.classes == ("a", "b")
    assert "does not name its classes: taken to be a, b, in this order" in found.cohort.notes[-1]
    assert (found.cohort.store.n_cap, found.split_seed) == (1024, 0)


def test_options_of_the_checkpoint(files: Path) -> None:
    save(files)
    with pytest.raises(FociError, match="abmil-small: has no option 'aligned'"):
        opened(files, "abmil-small", model_options={"aligned": False})
    assert "model_options" not in opened(files, "abmil-small").places


def test_the_notes_are_of_the_model_that_was_loaded(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    official = OFFICIAL["transmil"]
    torch.save(official.state(official.model()), files / "transmil.pt")
    calls: list[str] = []
    for step in ("read_content", "_assign"):
        _count(monkeypatch, step, calls)

    found = opened(files, "transmil.pt", model_options={"aligned": False})

    assert calls == ["read_content", "_assign"]
    assert found.backbone.config["aligned"] is False
    assert found.places["model_options"] == "aligned=False"
    assert not any("aligned=True" in note for note in found.model_notes)
    assert found.model_notes == inspect(files / "transmil.pt", aligned=False).notes
    assert any("aligned=True" in note for note in opened(files, "transmil.pt").model_notes)


def _count(monkeypatch: pytest.MonkeyPatch, step: str, calls: list[str]) -> None:
    module = sys.modules["foci.backbones.checkpoints.load"]  # the package has a function load
    done = getattr(module, step)

    def counted(*args: Any) -> Any:
        calls.append(step)
        return done(*args)

    monkeypatch.setattr(module, step, counted)
