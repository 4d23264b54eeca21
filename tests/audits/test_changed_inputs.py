"""Inputs that are replaced during a run end it, and leave nothing that calls itself complete."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci import selectors
from foci.audits.sources import model_files
from foci.backbones import save
from foci.backbones.training import TrainingRecipe
from foci.backbones.training.run import train_into
from foci.errors import FociError
from foci.progress import showing
from tests.makers import features as write
from tests.makers.audits import audit, model
from tests.makers.cohorts import D_IN, read
from tests.makers.fits import short

QUICK = {"rankings": ("native", "random")}


def replace_features(files: Path, name: str) -> Path:
    """Write another bag under the name of a slide."""
    path = files / "features" / f"{name}.h5"
    path.unlink()
    x = np.random.default_rng(99).normal(size=(6, D_IN)).astype(np.float32)
    write.trident(path, x, write.grid(6))
    return path


class Meddler:
    """Replaces a file at the given step of the first loop of that name."""

    def __init__(self, files: Path, name: str, loop: str, step: int) -> None:
        self.files, self.name, self.loop, self.step = files, name, loop, step

    def __call__(self, items: Iterable[Any], what: str) -> Iterable[Any]:
        for number, item in enumerate(items):
            if what.startswith(self.loop) and number == self.step:
                replace_features(self.files, self.name)
            yield item


def test_an_audit(files: Path) -> None:
    meddler = Meddler(files, "s09", "revealing", 3)  # its slide has been revealed
    says = r"s09\.h5: was changed during the audit; leave it alone and start again"
    with showing(meddler), pytest.raises(FociError, match=says):
        audit(files, changes=QUICK)
    assert not (files / "out").exists()  # nothing of the mixture stays
    assert audit(files, changes=QUICK).manifest.status == "complete"


def test_several_files_are_counted(files: Path) -> None:
    class Twice(Meddler):
        def __call__(self, items: Iterable[Any], what: str) -> Iterable[Any]:
            replace_features(self.files, "s10")
            return super().__call__(items, what)

    says = r"was changed during the audit \(and 1 more\);"
    with showing(Twice(files, "s09", "revealing", 1)), pytest.raises(FociError, match=says):
        audit(files, changes=QUICK)


def test_the_file_of_the_model(files: Path) -> None:
    folder = save(model(), files / "model", classes=["a", "b"])
    unchanged = model_files(folder)
    assert audit(files, "first", QUICK, model_files=unchanged).manifest.status == "complete"
    save(model(seed=1), folder, classes=["a", "b"])
    with pytest.raises(FociError, match=r"model/.*: was changed during the audit"):
        audit(files, changes=QUICK, model_files=unchanged)
    with pytest.raises(FociError, match=r"model/.*: was changed during the fit"):
        selectors.fit(model(), read(files), short("default"), model_files=unchanged)


def test_a_fit(files: Path) -> None:
    meddler = Meddler(files, "s00", "fit 2/", 1)
    says = r"s00\.h5: was changed during the fit; leave it alone"
    with showing(meddler), pytest.raises(FociError, match=says):
        selectors.fit(model(), read(files), short("paper-ste"), out=files / "out")
    assert list((files / "out").iterdir()) == []
    fitted = selectors.fit(model(), read(files), short("paper-ste"), out=files / "out")
    assert len(fitted.history) == 2


def test_a_training(files: Path) -> None:
    small: dict[str, Any] = {"widths": {"d": 8, "hidden": 4}}
    recipe = TrainingRecipe(epochs=2)
    meddler = Meddler(files, "s10", "train 2/", 1)  # a slide of test, which is only scored
    says = r"s10\.h5: was changed during the training; leave"
    with showing(meddler), pytest.raises(FociError, match=says):
        train_into(files / "out", "abmil", read(files), recipe, **small)
    assert list((files / "out").iterdir()) == []
    train_into(files / "out", "abmil", read(files), recipe, **small)
    assert json.loads((files / "out" / "backbone.json").read_text())["slides"]["test"] == 5
