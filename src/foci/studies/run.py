"""Run the cells of a plan in an order that their needs allow, the longest way first.

A cell is locked while it is computed, resumed where it was stopped, and written whole by rename.
"""

from __future__ import annotations

import contextlib
import json
import logging
import platform
import shutil
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from foci._version import __version__
from foci.engines import slurm
from foci.engines.base import Engine, Outcome, Task, run_tasks
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.files.lock import alone_if_free
from foci.progress import duration
from foci.studies.cells import compute, visible_device
from foci.studies.plan import CELLS, KINDS, WORK, Cell, Kind, Plan, StudyFolder, read_if_whole

ALONE: tuple[Kind, ...] = ("cost",)
"""Kinds that run last and one at a time: they measure time."""

_LOG = logging.getLogger(__name__)


@dataclass
class Tally:
    """How far a run has come.

    Attributes:
        total: Cells of the run, those finished before included.
        failed: By key, with the reason.
        skipped: Not run, because they need a failed one, by key, with its name.
        left: Estimated seconds of all cells that are left; None where that is not known.
    """

    total: int
    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    left: float | None = None

    @property
    def ended(self) -> int:
        """Cells that nothing more will happen to."""
        return self.done + len(self.failed) + len(self.skipped)


class Estimates:
    """Seconds of cells, from finished cells that are alike.

    A cell is estimated by the median of those of its kind with the same backbone, cohort and
    variant; where there are none, the same backbone and cohort, the same backbone, any.
    """

    def __init__(self, folder: StudyFolder, plan: Plan) -> None:
        self._known: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for cell in plan:
            seconds = folder.seconds(cell)
            if seconds is not None and cell.model is None:
                self.add(cell, seconds)

    def add(self, cell: Cell, seconds: float) -> None:
        """Note how long a cell took."""
        for group in _groups(cell):
            self._known[group].append(seconds)

    def of(self, cell: Cell) -> float | None:
        """Seconds that a cell will take; None where nothing like it has run."""
        for group in _groups(cell):
            if group in self._known:
                return statistics.median(self._known[group])
        return None

    def total(self, cells: Sequence[Cell]) -> float | None:
        """Seconds of some cells, one after the other; None where one of them is not known."""
        each = [self.of(cell) for cell in cells if cell.model is None]
        known = [seconds for seconds in each if seconds is not None]
        return sum(known) if len(known) == len(each) else None

    def ways(self, cells: Sequence[Cell]) -> dict[str, float]:
        """Seconds from the start of a cell to the end of all that need it, by key."""
        users: dict[str, list[str]] = defaultdict(list)
        for cell in cells:
            for need in cell.needs:
                users[need].append(cell.key)
        ways: dict[str, float] = {}
        for cell in reversed(cells):  # those that need a cell come after it
            after = max((ways[user] for user in users[cell.key] if user in ways), default=0.0)
            ways[cell.key] = (self.of(cell) or 1.0) + after
        return ways


def _groups(cell: Cell) -> list[tuple[str, ...]]:
    named = (cell.kind, cell.backbone, cell.cohort, cell.variant)
    return [named[:end] for end in (4, 3, 2, 1)]


class StudyProgress:
    """Reports cells as they end, with their rate and the time that is left.

    Where there is no terminal every cell is a message, else only a failed one.

    Args:
        slots: How many cells are under way at the same time.
        bar: Whether to draw a bar; None for a bar on a terminal.
    """

    def __init__(self, slots: int, *, bar: bool | None = None) -> None:
        self._slots = slots
        self._start, self._first = time.monotonic(), 0
        self._bar: Any = None
        self._wanted = sys.stderr.isatty() if bar is None else bar

    def __enter__(self) -> StudyProgress:
        if self._wanted:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("starting", total=None)
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, cell: Cell, outcome: Outcome, tally: Tally) -> None:
        """A cell has ended."""
        self._first += 1
        rest = left_text(tally, self._slots, self._first / (time.monotonic() - self._start))
        if self._bar is not None:
            self._bar.update(
                self._task, total=tally.total, completed=tally.ended,
                description=f"{rest}; last: {cell.name}",
            )  # fmt: skip
        ended = f"[{tally.ended}/{tally.total}] {cell.name}"
        if outcome.error is not None:
            _LOG.error("%s: FAILED: %s", ended, outcome.error)
        elif self._bar is None:
            took = duration(outcome.seconds)
            _LOG.info("%s: %s; %s", ended, took, rest)


def left_text(tally: Tally, slots: int, rate: float) -> str:
    """Rate and time left in words, for cells per second so far and cells at the same time."""
    per = f"{60 * rate:.1f} cells/min"
    if tally.left is None:
        return per
    return f"{per}, {duration(tally.left / max(slots, 1))} left"


Report = Callable[[Cell, Outcome, Tally], None]


@dataclass(frozen=True)
class CellWork:
    """Computes cells of a study, in whatever process it is sent to."""

    path: Path
    plan: Plan

    @classmethod
    def of(cls, folder: StudyFolder, plan: Plan) -> CellWork:
        """The cells of a plan."""
        return cls(folder.path.resolve(), plan)

    def __call__(self, task: Task) -> Outcome:
        """Compute one."""
        return run_cell(StudyFolder(self.path), self.plan[task.key], threads=task.threads)


def run_plan(
    folder: StudyFolder,
    plan: Plan,
    engine: Engine,
    *,
    only: Iterable[Kind] = KINDS,
    threads: int = 1,
    gpus: float | None = None,
    report: Report = lambda cell, outcome, tally: None,
) -> Tally:
    """Run all unfinished cells of some kinds; a failed cell stops only those that need it.

    Every cell gets so many threads and such a share of a GPU, see :class:`foci.engines.base.Task`.
    The report is called after every cell that has ended.
    """
    wanted = {cell.key: cell for cell in plan if cell.kind in set(only)}
    done = {cell.key for cell in plan if folder.result(cell) is not None}
    tally = Tally(len(wanted), len(done & wanted.keys()))
    left = {key: cell for key, cell in wanted.items() if key not in done}
    estimates = Estimates(folder, plan)
    tasks = [
        Task(key, cell.needs, threads, gpus, alone=cell.kind in ALONE) for key, cell in left.items()
    ]

    def longest_way(ready: list[Task]) -> list[Task]:
        ways = estimates.ways(list(left.values()))
        return sorted(ready, key=lambda task: -ways[task.key])

    for outcome in run_tasks(tasks, engine, done=done, first=longest_way):
        cell = left.pop(outcome.key)
        if outcome.missing is not None:
            tally.skipped[cell.key] = plan[outcome.missing].name
            continue
        if outcome.error is None:
            tally.done += 1
            estimates.add(cell, outcome.seconds)
        else:
            tally.failed[cell.key] = outcome.error
            if folder.failure(cell) != outcome.error:  # its process could not note that
                folder.write_record(cell, error=outcome.error)
        tally.left = estimates.total(list(left.values()))
        report(cell, outcome, tally)
    return tally


# One cell


_SECONDS_BETWEEN_LOOKS = 0.5
_VERSIONS, _RESULT = "versions.json", "result"


def run_cell(folder: StudyFolder, cell: Cell, *, threads: int = 1) -> Outcome:
    """Compute a cell unless it is finished; wait if another process is computing it.

    The number of threads is fixed, because sums in another order round differently: with the same
    number, the same machine gives the same bytes under every engine. The cells that it needs are
    finished.
    """
    work = folder.path / WORK / cell.key
    while folder.result(cell) is None:
        work.mkdir(parents=True, exist_ok=True)
        try:
            with alone_if_free(work) as free, _threads(threads):
                if free and folder.result(cell) is None:
                    return _computed(folder, cell, work, threads)
        except FileNotFoundError:  # removed by the process that has finished the cell
            if work.exists():
                raise
            continue
        if not free:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    shutil.rmtree(work, ignore_errors=True)
    return Outcome(cell.key)


def _computed(folder: StudyFolder, cell: Cell, work: Path, threads: int) -> Outcome:
    """Compute a cell in its locked work folder, and note how it ended."""
    start, busy = time.monotonic(), time.process_time()
    try:
        needed = _needed(folder, cell)
        _discard_other_versions(work, threads)
        compute(folder, cell, needed, work / _RESULT)
        finished = folder.path / CELLS / cell.key
        finished.parent.mkdir(parents=True, exist_ok=True)
        (work / _RESULT).rename(finished)
    except Exception as error:  # whatever it is, the other cells continue
        known = isinstance(error, FociError)
        line = " ".join((str(error) if known else f"{type(error).__name__}: {error}").split())
        folder.write_record(cell, error=line)
        return Outcome(cell.key, time.monotonic() - start, line)
    seconds = time.monotonic() - start
    folder.write_record(
        cell,
        seconds=round(seconds, 3),
        cpu_seconds=round(time.process_time() - busy, 3),
        **_versions(threads),
        machine=platform.node(),
    )
    shutil.rmtree(work, ignore_errors=True)
    return Outcome(cell.key, seconds)


def _needed(folder: StudyFolder, cell: Cell) -> tuple[Path, ...]:
    plan, found = folder.plan(), []
    # settings are read from study.yaml: they must be those of the key
    for needed in plan.needs(plan[cell.key]):
        result = folder.result(needed)
        if result is None:
            raise FociError(cell.name, f"needs {needed.name}, which is not finished", "run it")
        found.append(result)
    return tuple(found)


def _versions(threads: int) -> dict[str, Any]:
    """What the bytes of a result depend on, besides its key."""
    return {
        "threads": threads,
        "device": visible_device(),
        "foci": __version__,
        "torch": torch.__version__,
    }


def _discard_other_versions(work: Path, threads: int) -> None:
    """Keep what a killed process has done only if this one would have done the same."""
    now = _versions(threads)
    if read_if_whole(work / _VERSIONS) == now:
        return
    shutil.rmtree(work / _RESULT, ignore_errors=True)
    write_whole(work / _VERSIONS, json.dumps(now), durable=False)


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    """Torch with this many threads, restored on exit."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# Under SLURM


def array_job(
    folder: StudyFolder,
    plan: Plan,
    *,
    threads: int = 1,
    gpus: int = 0,
    at_once: int | None = None,
    options: Sequence[str] = (),
) -> str:
    """Text of a batch script with one element per unfinished cell, and the tables after them.

    Cells that others need have lower numbers, so that SLURM starts with them. An element whose
    needs are not finished waits for those that compute them, and computes what nobody does. For the
    options see :func:`foci.engines.slurm.script`.

    Raises:
        FociError: If nothing is left to do.
    """
    left = [i for i, cell in enumerate(plan.cells) if folder.result(cell) is None]
    if not left:
        raise FociError(folder.path, "has no cell left to run", "run foci study tables")
    path = str(folder.path.resolve())
    command = ["study", "cell", path, "--threads", str(threads), "--plan", plan.digest[:12]]
    return slurm.script(
        folder.path, folder.study.name, left, command, ["study", "tables", path],
        threads=threads, gpus=gpus, at_once=at_once, options=options,
    )  # fmt: skip


def run_with_needs(folder: StudyFolder, plan: Plan, cell: Cell, *, threads: int = 1) -> Outcome:
    """Run a cell after the cells that it needs; all that are finished are left alone."""
    for needed in plan.needs(cell):
        outcome = run_cell(folder, needed, threads=threads)
        if outcome.error is not None:
            why = f"skipped: {needed.name} failed ({outcome.error})"
            return Outcome(cell.key, error=why)
    return run_cell(folder, cell, threads=threads)


def cell_at(plan: Plan, index: int, expected: str | None) -> Cell:
    """The cell with a number, if the plan is the one that the number was given for."""
    if expected is not None and not plan.digest.startswith(expected):
        what = "was made for another plan: study.yaml or a cohort was changed"
        raise FociError(f"--plan {expected}", what, "write the job again with foci study slurm")
    if not 0 <= index < len(plan):
        what = f"is not between 0 and {len(plan) - 1}"
        raise FociError(f"--index {index}", what, "see foci study plan --cells")
    return plan.cells[index]
