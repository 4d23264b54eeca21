"""Two runs never share a folder."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foci import selectors
from foci.backbones.training import TrainingRecipe
from foci.backbones.training.run import train_into
from foci.errors import FociError
from foci.files import lock
from foci.files.lock import LOCK, alone_in
from foci.reports import write_report
from tests.makers.audits import audit, content, model
from tests.makers.cohorts import make_files, read
from tests.makers.fits import short

QUICK = {"rankings": ("native", "random")}
SAYS = "out: another foci audit is running here; wait for it, or choose another --out"
HOLDS = """
import pathlib, runpy, sys
alone_in = runpy.run_path(sys.argv[1])["alone_in"]
with alone_in(pathlib.Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return make_files(tmp_path)


@contextmanager
def held_elsewhere(folder: Path) -> Iterator[None]:
    """Another process holds the folder until it is killed."""
    command = [sys.executable, "-c", HOLDS, lock.__file__, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        yield
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_a_second_process_is_refused_and_touches_nothing(files: Path) -> None:
    whole = content(audit(files, "whole", QUICK).folder)
    out = files / "out"
    (out / "parts").mkdir(parents=True)
    other = {"format": 1, "status": "running", "key": "other", "run_inputs": {}, "versions": {}}
    for name in ("manifest.json", "parts/00000.part", ".writing-abc"):
        (out / name).write_text(json.dumps(other))
    with held_elsewhere(out):
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        with pytest.raises(FociError, match=SAYS):
            audit(files, changes=QUICK, force=True)
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert (out / LOCK).exists()  # left by the killed process, and held by nobody
    assert content(audit(files, changes=QUICK, force=True).folder) == whole


def test_a_folder_that_is_only_held_counts_as_empty(files: Path) -> None:
    (files / "out").mkdir()
    with held_elsewhere(files / "out"), pytest.raises(FociError, match=SAYS):
        audit(files, changes=QUICK)
    audit(files, changes=QUICK)
    assert not (files / "out" / LOCK).exists()


def test_a_complete_audit_is_opened_without_the_lock(files: Path) -> None:
    found = audit(files, changes=QUICK)
    with held_elsewhere(found.folder):
        assert audit(files, changes=QUICK).summary == found.summary


def test_a_fit_and_a_training_hold_their_folder(files: Path) -> None:
    out, cohort = files / "out", read(files)
    out.mkdir()
    with held_elsewhere(out):
        with pytest.raises(FociError, match="another foci fit is running here; wait for it"):
            selectors.fit(model(), cohort, short("default"), out=out)
        with pytest.raises(FociError, match="another foci train is running here; wait for it"):
            train_into(out, "abmil", cohort, TrainingRecipe(epochs=1))
        assert [path.name for path in out.iterdir()] == [LOCK]
    selectors.fit(model(), cohort, short("default"), out=out)
    assert sorted(path.name for path in out.iterdir()) == ["selector.json", "selector.safetensors"]


def test_what_a_killed_report_left_in_a_complete_audit_is_swept(files: Path) -> None:
    found = audit(files, changes=QUICK)
    whole = content(found.folder)
    for name in (".writing-abc", LOCK, "parts/00000.part"):
        (found.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (found.folder / name).touch()
    audit(files, changes=QUICK)
    assert content(found.folder) == whole
    (found.folder / ".writing-abc").touch()
    write_report(found)
    assert content(found.folder).keys() == {*whole, "report.html"}


def test_it_is_let_go_at_the_end_and_after_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError), alone_in(tmp_path):
            with pytest.raises(FociError, match="is running here"), alone_in(tmp_path):
                pass
            assert [path.name for path in tmp_path.iterdir()] == [LOCK]
            raise RuntimeError
        assert list(tmp_path.iterdir()) == []


def test_a_file_that_vanished_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[int] = []
    real = lock.lock

    def late(handle: int) -> bool:
        if not locked:
            (tmp_path / LOCK).unlink()  # by the run that held it
        locked.append(os.fstat(handle).st_ino)
        return real(handle)

    monkeypatch.setattr(lock, "lock", late)
    with alone_in(tmp_path):
        assert len(locked) == 2
        assert (tmp_path / LOCK).stat().st_ino == locked[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="needs fcntl")
def test_a_file_system_without_locks_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", none)
    with alone_in(tmp_path):
        assert (tmp_path / LOCK).exists()
