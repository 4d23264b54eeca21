"""Where nothing can be written a command says so in one line."""

import errno
import tempfile
from pathlib import Path
from typing import Any

import pytest

from foci import backbones
from tests.cli.invoke import Foci
from tests.makers.audits import model
from tests.makers.cohorts import make_files
from tests.makers.curves import Counts
from tests.makers.folders import write_folder

COUNTS: Counts = {"native": [[9, 8]], "random": [[6, 6]] * 2}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (errno.ENOSPC, "no space left on device; free some space and run the same command again"),
        (errno.EROFS, "read-only file system; check its permissions, or choose another --out"),
        (errno.EACCES, "permission denied; check its permissions, or choose another --out"),
        (errno.EIO, "input/output error; check the path, or choose another --out"),
    ],
)
@pytest.mark.parametrize("command", ["report", "compare"])
def test_pages(
    foci: Foci, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int, says: str
) -> None:
    folders = [tmp_path / "a", tmp_path / "b"][: 1 + (command == "compare")]
    for folder in folders:
        write_folder(folder, COUNTS, ["A", "B"], ["tumour", None])

    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError(code, "no", str(tmp_path / ".writing-abc"))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    done = foci(command, *folders, "--out", tmp_path / "page.html")
    assert (done.code, done.err) == (2, f"foci: {tmp_path / 'page.html'}: {says}\n")


@pytest.mark.parametrize("command", ["audit", "train", "fit"])
def test_folders(foci: Foci, tmp_path: Path, command: str) -> None:
    make_files(tmp_path)
    backbones.save(model(), tmp_path / "abmil", classes=["a", "b"], n_cap=9)
    given: dict[str, list[str | Path]] = {
        "audit": ["--model", tmp_path / "abmil", "--rankings", "native", "--set", "n_boot=20"],
        "train": ["abmil", "--epochs", "1", "--set", "d=16", "--set", "hidden=8"],
        "fit": [tmp_path / "abmil", "--set", "schedule.epochs=1", "--set", "schedule.warmup=0"],
    }
    table = tmp_path / "labels.csv"  # a file, so that no folder can be made below it
    cohort: list[str | Path] = ["--features", tmp_path / "features", "--labels", table]
    done = foci(command, *given[command], *cohort, "--out", table / "below")
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert done.err.startswith(f"foci: {table}")
    assert done.err.endswith("choose another --out\n")


def test_an_error_without_a_number(
    foci: Foci, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "a", COUNTS, ["A", "B"], ["tumour", None]).folder

    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError("the tape is torn\nand more")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    done = foci("report", folder)
    assert (done.code, done.err) == (2, "foci: a file: the tape is torn and more; try again\n")


def test_an_interrupt_is_no_error(foci: Foci, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("foci.cli.app", stop)
    done = foci("doctor")
    assert (done.code, done.err) == (130, "foci: stopped\n")
