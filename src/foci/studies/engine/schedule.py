"""Run the cells of a plan in an order that their needs allow, the longest way first.

A run shows how far it has come: a bar on a terminal, one line per cell anywhere else.
"""

from __future__ import annotations

import logging
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from foci.progress import duration
from foci.studies.engine.work import Outcome, run_cell
from foci.studies.plan import KINDS, Cell, Kind, Plan, StudyFolder

_LOG = logging.getLogger(__name__)

ALONE: tuple[Kind, ...] = ("cost",)
"""Kinds that run last and one at a time: they measure time."""


class Engine(Protocol):
    """Where cells are computed."""

    @property
    def slots(self) -> int:
        """How many cells may be under way at the same time."""

    @property
    def ahead(self) -> int:
        """How many more cells may wait there, so that no worker waits for the next one."""

    def submit(self, cell: Cell) -> None:
        """Start a cell."""

    def wait(self) -> list[Outcome]:
        """Wait until at least one cell has ended."""


class InProcess:
    """An engine for one cell at a time; nothing else is started or imported."""

    slots, ahead = 1, 0

    def __init__(self, folder: StudyFolder, threads: int = 1) -> None:
        self._folder, self._threads = folder, threads
        self._next: list[Cell] = []

    def submit(self, cell: Cell) -> None:
        """Remember a cell until somebody waits for it."""
        self._next.append(cell)

    def wait(self) -> list[Outcome]:
        """Compute the cell."""
        return [run_cell(self._folder, self._next.pop(0), threads=self._threads)]


@dataclass
class Tally:
    """How far a run has come.

    Attributes:
        total: Cells of the run, those finished before included.
        failed: By key, with the reason.
        skipped: Not run, because they need a failed one, by key, with its name.
        seconds: Spent on cells of this run.
        left: Estimated seconds of all cells that are left; None where that is not known.
    """

    total: int
    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    left: float | None = None

    @property
    def ended(self) -> int:
        """Cells that nothing more will happen to."""
        return self.done + len(self.failed) + len(self.skipped)


Report = Callable[[Cell, Outcome, Tally], None]


def run_plan(
    folder: StudyFolder,
    plan: Plan,
    engine: Engine,
    *,
    only: Iterable[Kind] = KINDS,
    report: Report = lambda cell, outcome, tally: None,
) -> Tally:
    """Run all unfinished cells of some kinds; a failed cell stops only those that need it.

    The report is called after every cell that has ended.
    """
    wanted = {cell.key: cell for cell in plan if cell.kind in set(only)}
    done = {cell.key for cell in plan if folder.result(cell) is not None}
    tally = Tally(len(wanted), len(done & wanted.keys()))
    waiting = {key: cell for key, cell in wanted.items() if key not in done}
    estimates = Estimates(folder, plan)
    running: dict[str, Cell] = {}
    while waiting or running:
        _skip(plan, waiting, running, done, tally)
        for cell in _next(waiting, running, done, estimates, engine.slots + engine.ahead):
            running[cell.key] = waiting.pop(cell.key)
            engine.submit(cell)
        if not running:
            break
        for outcome in engine.wait():
            cell = running.pop(outcome.key)
            tally.seconds += outcome.seconds
            if outcome.error is None:
                done.add(cell.key)
                tally.done += 1
                estimates.add(cell, outcome.seconds)
            else:
                tally.failed[cell.key] = outcome.error
            tally.left = estimates.total([*waiting.values(), *running.values()])
            report(cell, outcome, tally)
    return tally


def _skip(
    plan: Plan, waiting: dict[str, Cell], running: dict[str, Cell], done: set[str], tally: Tally
) -> None:
    """Set aside the cells that need one which will not be there."""
    for key in list(waiting):
        possible = {*waiting, *running, *done}
        missing = next((need for need in waiting[key].needs if need not in possible), None)
        if missing is not None:
            tally.skipped[key] = plan[missing].name
            del waiting[key]


def _next(
    waiting: dict[str, Cell],
    running: dict[str, Cell],
    done: set[str],
    estimates: Estimates,
    places: int,
) -> list[Cell]:
    """Cells to start now: those on the longest way to the end first."""
    if any(cell.kind in ALONE for cell in running.values()):
        return []
    ready = [cell for cell in waiting.values() if all(need in done for need in cell.needs)]
    shared = [cell for cell in ready if cell.kind not in ALONE]
    if shared:
        ways = estimates.ways(list(waiting.values()))
        shared.sort(key=lambda cell: -ways[cell.key])
        return shared[: max(places - len(running), 0)]
    alone = [cell for cell in ready if cell.kind in ALONE]
    left = any(cell.kind not in ALONE for cell in waiting.values())
    return alone[:1] if not running and not left else []


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
