"""Lose processes and machines in the middle of a study, and compare what it ends with."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from pathlib import Path
from typing import Any

from foci.audits.folder import MANIFEST
from foci.engines.base import InProcess
from foci.studies import figures, tables
from foci.studies.plan import StudyFolder
from foci.studies.run import CellWork, run_plan
from tests.engines.odd_work import waited_for
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
    plan = study.plan()
    tally = run_plan(study, plan, InProcess(CellWork.of(study, plan)))
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


def kill_the_writer(study: StudyFolder) -> int:
    """SIGKILL a process that is in the middle of a cell of this study: one with its lock open."""
    training_state(study)
    pid = waited_for(lambda: next(iter(_holding(study.path / "work")), None))
    os.kill(pid, signal.SIGKILL)
    return int(pid)


def _holding(folder: Path) -> list[int]:
    """Other processes that have a file below a folder open."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError):
                opened = [str(handle.readlink()) for handle in (process / "fd").iterdir()]
                if any(name.startswith(f"{folder}/") for name in opened):
                    found.append(int(process.name))
    return found
