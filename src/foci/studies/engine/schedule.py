"""Run the cells of a plan in an order that their needs allow, the longest way first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from foci.studies.engine.estimate import Estimates
from foci.studies.engine.work import Outcome
from foci.studies.folder import StudyFolder
from foci.studies.plan import KINDS, Cell, Kind, Plan

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
        """Begin with a cell."""

    def wait(self) -> list[Outcome]:
        """Wait until at least one cell has ended."""


@dataclass
class Tally:
    """How far a run has come.

    Attributes:
        total: Cells of the run, those finished before included.
        done: Finished.
        failed: Failed, by key, with the reason.
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
    """Run all unfinished cells; a failed cell stops only those that need it.

    Args:
        folder: The study.
        plan: Its cells.
        engine: Where they are computed.
        only: Kinds of cells to run.
        report: Called after every cell that has ended.
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
    """Cells to begin with now: those on the longest way to the end first."""
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
