"""How long the cells of a study take, and what a run says while they are computed."""

from __future__ import annotations

import logging
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from foci.engines.base import Outcome
from foci.progress import duration
from foci.studies.plan import Cell, Plan, StudyFolder

_LOG = logging.getLogger(__name__)


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
