"""Compute cells one after the other in this process."""

from __future__ import annotations

from foci.studies.engine.work import Outcome, run_cell
from foci.studies.folder import StudyFolder
from foci.studies.plan import Cell


class InProcess:
    """An engine for one cell at a time; nothing else is started or imported.

    Args:
        folder: The study.
        threads: Of torch.
    """

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
