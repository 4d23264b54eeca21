"""Show how far a study has come: a bar on a terminal, one line per cell anywhere else."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from foci.progress import duration
from foci.studies.engine.schedule import Tally
from foci.studies.engine.work import Outcome
from foci.studies.plan import Cell

_LOG = logging.getLogger(__name__)


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
