"""The paper's printed numbers, read from one data file: table, cohort, row, column, mean, std."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_suffix(".csv")
COHORTS = ("nsclc", "brca", "panda")
FOCI = "+foci"
"""Ends the name of a row in which a selector ranks the tiles of a backbone."""


@dataclass(frozen=True)
class PublishedNumber:
    """One printed cell of the paper.

    Attributes:
        label: Table, as the paper's LaTeX label without ``tab:``; ``tests`` for those in its text.
        cohort: ``nsclc``, ``brca``, ``panda``, or ``mean`` and ``all`` over them.
        row: Backbone (with ``+foci`` where a selector ranks), recipe, threshold or tile cap.
        column: Quantity; Reach in percent where the paper prints percent.
        mean: As printed.
        std: As printed after the plus-minus sign; None where nothing is printed.
        seeds: How many seeds were averaged; None where it is not said.
        digits: Decimals printed.
    """

    label: str
    cohort: str
    row: str
    column: str
    mean: float
    std: float | None
    seeds: int | None
    digits: int

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit: the true mean is within this of the printed."""
        return 0.5 * 10.0**-self.digits


@dataclass(frozen=True)
class PublishedNumbers:
    """All printed cells, by table, cohort, row and column."""

    _cells: dict[tuple[str, str, str, str], PublishedNumber]

    def __iter__(self) -> Iterator[PublishedNumber]:
        return iter(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)

    def get(self, label: str, cohort: str, row: str, column: str) -> PublishedNumber | None:
        """The printed cell; None where the paper prints nothing.

        >>> published().get("main", "nsclc", "transmil+foci", "msk_cond").mean
        3.21
        """
        return self._cells.get((label, cohort, row, column))

    def table(self, label: str) -> list[PublishedNumber]:
        """All cells of one table, in the order of print."""
        return [cell for cell in self if cell.label == label]


@lru_cache(maxsize=1)
def published() -> PublishedNumbers:
    """Read the paper's numbers."""
    with FILE.open(newline="", encoding="utf-8") as file:
        cells = [
            PublishedNumber(
                label=row["label"],
                cohort=row["cohort"],
                row=row["row"],
                column=row["column"],
                mean=float(row["mean"]),
                std=float(row["std"]) if row["std"] else None,
                seeds=int(row["seeds"]) if row["seeds"] else None,
                digits=int(row["digits"]),
            )
            for row in csv.DictReader(file)
        ]
    return PublishedNumbers({(c.label, c.cohort, c.row, c.column): c for c in cells})
