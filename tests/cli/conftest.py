"""A command line with its own cache and a wide terminal, and files to give it."""

from pathlib import Path

import pytest

from foci import backbones
from tests.cli.invoke import Foci
from tests.makers.audits import model
from tests.makers.cohorts import make_files


@pytest.fixture
def foci(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Foci:
    monkeypatch.setenv("FOCI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return Foci(monkeypatch, capsys)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Features, a label table and a trained model."""
    make_files(tmp_path)
    backbones.save(model(), tmp_path / "abmil", classes=["a", "b"], n_cap=9, recipe={"seed": 0})
    return tmp_path
