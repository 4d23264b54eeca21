"""A command line with its own cache and a wide terminal."""

from pathlib import Path

import pytest

from tests.cli.invoke import Foci


@pytest.fixture
def foci(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Foci:
    monkeypatch.setenv("FOCI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return Foci(monkeypatch, capsys)
