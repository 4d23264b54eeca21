"""Kill an audit, a training and a fit before any of their file operations, or fill the disk there.

``python -m tests.kill_campaign`` runs all cases, ``tests/test_kills.py`` a few of them.

Every case runs in a process of its own, forked from one that has imported everything. The run is
given again after it was stopped, and the folder must then hold the files of a run that was never
stopped, byte for byte, and nothing else. The clock of the manifest stands still.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch

import foci.audits.prepare
import foci.audits.run
from foci import selectors
from foci.audits.sources import Sources
from foci.backbones.training import TrainingRecipe
from foci.backbones.training.run import train_into
from foci.bags import Cohort
from foci.cli import _refused
from foci.files.run_log import LOG
from foci.reports import write_report
from tests.makers.audits import LEARNED, model, settings
from tests.makers.cohorts import N_CAP, make_files
from tests.makers.fits import short

FULL_DISK, BROKEN = 28, 1
_EVENTS = {
    "os.rename": "rename",
    "os.remove": "unlink",
    "os.mkdir": "mkdir",
    "os.rmdir": "rmdir",
    "os.chmod": "chmod",
    "foci.fsync": "fsync",
    "foci.write": "write",
    "open": "open",
}
"""Audit events, raised before the operation; ``write`` comes after half of the content."""

NEEDS_SPACE = ("rename", "mkdir", "fsync", "write", "open")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _cohort(files: Path, case: Path) -> Cohort:
    where = (files / "features", files / "labels.csv")
    return Cohort.read(*where, n_cap=N_CAP, cache=case / "cache")


def small_audit(files: Path, case: Path) -> None:
    """An audit with one selector, in three blocks, and its report."""
    chosen = settings(rankings=("native", "selector", "random"), recipe_settings=LEARNED)
    write_report(foci.audits.run.run(Sources(model(), _cohort(files, case)), chosen, case / "out"))


def small_training(files: Path, case: Path) -> None:
    """Two epochs of ABMIL."""
    recipe, widths = TrainingRecipe(epochs=2), {"d": 16, "hidden": 8}
    train_into(case / "out", "abmil", _cohort(files, case), recipe, widths=widths)


def small_fit(files: Path, case: Path) -> None:
    """Two epochs of the default selector."""
    selectors.fit(model(), _cohort(files, case), short("default"), out=case / "out")


WORK: dict[str, Callable[[Path, Path], None]] = {
    "audit": small_audit,
    "training": small_training,
    "fit": small_fit,
}


@dataclass
class Stop:
    """When a run is stopped, and how.

    Attributes:
        before: Number of the file operation, counted from 0; None to stop nowhere.
        full: Fill the disk there and from there on, instead of killing the process.
        log: File that gets one line per operation, outside of the case.
    """

    before: int | None = None
    full: bool = False
    log: Path | None = None
    seen: int = field(default=0, init=False)

    def install(self, case: Path) -> None:
        """Watch all file operations of this process below the folder of the case."""
        inside = str(case)
        fsync, write_bytes, write_table = os.fsync, Path.write_bytes, pq.ParquetWriter.write_table

        def watched_fsync(handle: int) -> None:
            sys.audit("foci.fsync", inside)
            fsync(handle)

        def watched_bytes(path: Path, content: bytes) -> int:
            with path.open("wb") as file:
                file.write(content[: len(content) // 2])
            sys.audit("foci.write", str(path))
            return write_bytes(path, content)

        def watched_table(writer: Any, *given: Any, **more: Any) -> None:
            write_table(writer, *given, **more)
            if writer.file_handle is not None:  # else into memory, which no disk limits
                sys.audit("foci.write", inside)

        os.fsync, Path.write_bytes = watched_fsync, watched_bytes  # type: ignore[assignment]
        pq.ParquetWriter.write_table = watched_table

        def hook(event: str, given: tuple[Any, ...]) -> None:
            if event not in _EVENTS or inside not in str(given[0]):
                return
            if event == "open" and not (given[2] or 0) & _WRITES:
                return
            self._met(_EVENTS[event], None if event.startswith("foci.") else str(given[0]))

        sys.addaudithook(hook)

    def _met(self, operation: str, path: str | None) -> None:
        number, self.seen = self.seen, self.seen + 1
        if self.log is not None:
            log, self.log = self.log, None  # the log's own writing is no operation
            with log.open("a") as file:
                file.write(f"{operation}\n")
            self.log = log
        if self.before is None or number < self.before:
            return
        if not self.full:
            os.kill(os.getpid(), signal.SIGKILL)
        elif operation in NEEDS_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def child(work: str, files: Path, case: Path, stop: Stop, ready: Any = None) -> None:
    """Run one piece of work in this process; the exit code says how it ended."""
    torch.set_num_threads(1)
    for module in (foci.audits.run, foci.audits.prepare):
        vars(module)["now"] = lambda: "2026-01-01T00:00:00+00:00"
    if stop.before is not None or stop.log is not None:
        stop.install(case)
    if ready is not None:
        ready.set()
    try:
        WORK[work](files, case)
    except OSError as error:
        line = str(_refused(error))
        whole = error.errno == errno.ENOSPC and "a file:" not in line and "\n" not in line
        if not whole:
            traceback.print_exc()
        os._exit(FULL_DISK if whole else BROKEN)
    except BaseException:
        traceback.print_exc()
        os._exit(BROKEN)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder but the log, byte for byte, and every folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if path.name != LOG
    }


@cache
def _warm_context() -> ForkServerContext:
    """Processes forked off one that has run every piece of work, even if another serves already."""
    context = multiprocessing.get_context("forkserver")
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    context.set_forkserver_preload(["tests.kill_warmup"])
    return context


class Harness:
    """Runs cases of one piece of work and compares their folders with that of a whole run.

    Args:
        work: A name of :data:`WORK`.
        folder: Scratch folder.
    """

    def __init__(self, work: str, folder: Path) -> None:
        self.work, self.folder, self._cases = work, folder, 0
        self._context = _warm_context()
        self.files = make_files(folder / work)
        self._run(self._case(), Stop())  # starts the process that all others are forked from
        whole, log = self._case(), folder / f"{work}.log"
        started = time.perf_counter()
        assert self._run(whole, Stop(log=log)) == 0
        self.seconds = time.perf_counter() - started
        self.operations = log.read_text().split()
        self.whole = tree(whole)

    def kill_before(self, operation: int) -> str | None:
        """Kill before an operation, then run again; what went wrong, or None."""
        case = self._case()
        code = self._run(case, Stop(before=operation))
        wrong = None if code == -signal.SIGKILL else f"ended with {code} instead of being killed"
        return wrong or self._again(case)

    def kill_after(self, seconds: float) -> str | None:
        """Kill at a moment, then run again; what went wrong, or None."""
        case = self._case()
        code = self._run(case, Stop(), seconds)
        wrong = None if code in (0, -signal.SIGKILL) else f"ended with {code}"
        done = tree(case) == self.whole  # the kill met a run that had nothing left to do
        return wrong or self._again(case, finished=code == 0 or done)

    def fill_disk_at(self, operation: int) -> str | None:
        """Fill the disk at an operation, then run again; what went wrong, or None.

        Where only the bag cache or a clean-up meets the full disk, the run ends well.
        """
        case = self._case()
        code = self._run(case, Stop(before=operation, full=True))
        left = [name for name in tree(case) if ".writing-" in name or ".foci-lock" in name]
        if code not in (0, FULL_DISK) or left:
            return f"ended with {code} on a full disk and left {left}"
        return self._again(case, finished=code == 0)

    def _again(self, case: Path, *, finished: bool = False) -> str | None:
        code = 0 if finished and self.work != "audit" else self._run(case, Stop())
        found = tree(case)
        if finished:  # a cache that a full disk kept out costs time, and nothing else
            found = {**{k: v for k, v in self.whole.items() if k.startswith("cache")}, **found}
        shutil.rmtree(case)
        if code != 0:
            return f"ended with {code} when it was given again"
        other = {name for name in {*found, *self.whole} if found.get(name) != self.whole.get(name)}
        other |= found.keys() ^ self.whole.keys()
        return f"differs in {sorted(other)}" if other else None

    def _case(self) -> Path:
        self._cases += 1
        case = self.folder / f"{self.work}-{self._cases:04d}"
        case.mkdir()
        return case

    def _run(self, case: Path, stop: Stop, seconds: float | None = None) -> int:
        """Exit code of one run, which is killed after some seconds if it is told to."""
        ready = self._context.Event()
        arguments = (self.work, self.files, case, stop, ready)
        process = self._context.Process(target=child, args=arguments)
        process.start()
        if seconds is not None:
            ready.wait()
            time.sleep(seconds)
            process.kill()
        process.join()
        assert process.exitcode is not None
        return process.exitcode
