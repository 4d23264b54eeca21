"""One selector per seed, fitted once."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from foci import selectors
from foci.audits.selectors import described, fit_selectors, on_fitting, seed_folder
from foci.backbones import fingerprint
from foci.errors import FociError
from foci.selectors import FittedSelector
from tests.makers.audits import LEARNED, model, settings
from tests.makers.cohorts import read


def fit(files: Path, choose_by: str, seed: int = 0, **more: Any) -> dict[int, FittedSelector]:
    chosen = settings(seeds=(4, 1), choose_by=choose_by, **more)
    return fit_selectors(model(seed=seed), read(files), chosen, files / "out")


def test_fitted_once_and_loaded_afterwards(
    files: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fitted = fit(files, "aukc")
    assert list(fitted) == [4, 1]
    named = [line.split(":")[0] for line in caplog.messages]
    assert named == ["selector of seed 4", "selector of seed 1"]
    assert "best epoch 1 of 1, validation AUKC 0." in caplog.messages[0]
    facts = described(fitted[1], files / "out")
    weights = (seed_folder(files / "out", 1) / "selector.safetensors").read_bytes()
    assert facts.weights_sha256 == hashlib.sha256(weights).hexdigest()
    assert (facts.seed, facts.best_epoch, facts.site) == (1, 1, "attention")
    monkeypatch.setattr(selectors, "fit", lambda *a, **k: pytest.fail("fitted again"))
    again = fit(files, "aukc")
    assert len(caplog.messages) == 2
    for seed in (4, 1):
        assert fingerprint(again[seed].best.head) == fingerprint(fitted[seed].best.head)
    with pytest.raises(FociError, match="is not the one that the selector was fitted on"):
        fit(files, "aukc", seed=1)


def test_the_view_says_nothing_of_what_is_fitted(files: Path) -> None:
    own: dict[str, Any] = {"target": "prediction", "fit_target": None}
    assert fit(files, "loss", **own)[4].target == "label"  # the recipe's own
    shutil.rmtree(files / "out")
    own = {"recipe_settings": {**LEARNED, "target": "prediction"}, "fit_target": None}
    assert fit(files, "loss", target="label", **own)[4].target == "prediction"
    shutil.rmtree(files / "out")
    assert fit(files, "loss", **{**own, "fit_target": "label"})[4].target == "label"


def test_the_loss_may_choose_the_epoch(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    fitted = fit(files, "loss")
    (epoch,) = fitted[4].history
    assert epoch.score == -epoch.val_loss
    assert f"validation loss {epoch.val_loss:.3f}" in caplog.messages[0]


def test_what_is_to_be_known_of_two_selectors_is_said_once(files: Path) -> None:
    fitted = fit(files, "loss")
    assert fitted[4].notes == fitted[1].notes
    said = ["no training slide had class b as target: scores for it are untrained"]
    assert on_fitting(fitted) == said


def test_a_start_that_no_epoch_improves_is_said(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fit(files, "decisive", recipe="tuned")
    assert any(
        "no epoch of 1 was better than its start" in line or "net gain over evidence" in line
        for line in caplog.messages
    )
    assert len(caplog.messages) == 2
