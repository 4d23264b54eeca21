"""One torch thread per worker: several workers share two cores."""

import gc
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.cli.invoke import Foci


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Libraries and test cases are no garbage: look for none while they load, nor ever after."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


settings.register_profile("foci", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("foci")


@pytest.fixture
def foci(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> "Foci":
    """The command line in an empty folder, with a cache of its own."""
    from tests.cli.invoke import Foci  # few tests need it, and it loads the commands

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOCI_CACHE", str(tmp_path / "cache"))
    return Foci(monkeypatch, capsys)
