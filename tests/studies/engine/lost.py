"""Lose processes and machines in the middle of a study, and compare what it ends with."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foci.audits.folder import MANIFEST
from foci.studies import figures, tables
from foci.studies.engine.schedule import InProcess, run_plan
from foci.studies.plan import StudyFolder
from tests.makers.audits import content
from tests.makers.studies import NARROW, make

LONG = {
    "abmil": {"widths": {"d": 16, "hidden": 8}, "training": {"epochs": 30, "lr": 5e-3}},
    "transmil": {**NARROW["transmil"], "training": {"epochs": 15}},
}
"""Trainings that last seconds, so that there is a middle."""


def finished_here(folder: Path, *names: str) -> StudyFolder:
    """A study, run in this process: what every other way must end with."""
    chosen = {name: LONG[name] for name in names or LONG}
    study = make(folder, "one", backbones=chosen)
    tally = run_plan(study, study.plan(), InProcess(study))
    assert tally.done == tally.total
    return study


def copied(study: StudyFolder, to: Path) -> StudyFolder:
    """The same study in another folder, with nothing done."""
    to.mkdir()
    shutil.copytree(study.path / "one", to / "one")  # with the times of the files
    shutil.copy(study.path / "study.yaml", to)
    return StudyFolder(to)


def check_equal(study: StudyFolder, reference: StudyFolder) -> None:
    """Both have left the same bytes, and give the same tables and figures."""
    assert _results(study) == _results(reference)
    assert _drawn(study) == _drawn(reference)


def _results(study: StudyFolder) -> dict[str, Any]:
    """Everything that the cells have left, byte for byte; times and logs excepted."""
    found: dict[str, Any] = {}
    for cell in study.plan():
        folder = study.result(cell)
        assert folder is not None, f"{cell.name}: {study.failure(cell)}"
        if cell.kind == "audit":
            found[cell.name] = content(folder)
            sources = found[cell.name][MANIFEST]["sources"]
            inside = {k: v.replace(str(study.path), "") for k, v in sources.items()}
            found[cell.name][MANIFEST]["sources"] = inside
        else:
            found[cell.name] = {p.name: p.read_bytes() for p in folder.iterdir()}
    return found


def _drawn(study: StudyFolder) -> dict[str, bytes]:
    """Every table and figure of a study, byte for byte."""
    figures.write(study, tables.write(study).numbers)
    files = [path for name in ("tables", "figures") for path in (study.path / name).iterdir()]
    return {path.name: path.read_bytes() for path in files}


def training_state(study: StudyFolder, seconds: float = 300.0) -> Path:
    """Wait until a training is under way: its first epoch is saved, its last is not."""
    return waited_for(
        lambda: next(study.path.glob("work/*/result/training.safetensors"), None), seconds
    )


def waited_for(find: Callable[[], Any], seconds: float = 120.0, every: float = 0.02) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = find()
        if found:
            return found
        time.sleep(every)
    raise AssertionError("nothing happened")


def kill_a_worker(study: StudyFolder) -> int:
    """SIGKILL a process of Ray that is in the middle of a cell of this study."""
    training_state(study)
    pid = waited_for(lambda: next(iter(_busy_workers()), None))
    os.kill(pid, signal.SIGKILL)
    return int(pid)


def processes_of_ray() -> list[int]:
    """Everything that an embedded Ray of this user has started and that is still there."""
    return _processes(lambda command: b"/tmp/ray/session_" in command or b"ray::" in command)


def _busy_workers() -> list[int]:
    """Processes that run a cell: Ray gives them the name of the task, as title or command."""
    return _processes(lambda command: command.startswith(b"ray::_task"))


def _processes(wanted: Callable[[bytes], bool]) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if wanted(command):
                found.append(int(folder.name))
    return found
