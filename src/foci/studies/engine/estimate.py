"""Estimate how long cells take from those that have run."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from foci.studies.folder import StudyFolder
from foci.studies.plan import Cell, Plan


class Estimates:
    """Seconds of cells, from finished cells that are alike.

    A cell is estimated by the median of those of its kind with the same backbone, cohort and
    variant; where there are none, the same backbone and cohort, the same backbone, any.

    Args:
        folder: The study, whose records are read.
        plan: Its cells.
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
