"""A table as CSV: one line per cell, the same columns for every table."""

from __future__ import annotations

import csv
import io
from typing import Any

from foci.studies.tables.table import Cell, Table

FIXED = ("mean", "std", "n")
PAPER = ("paper_mean", "paper_std", "paper_seeds", "difference", "z", "marked", "gap")


def to_csv(table: Table) -> str:
    """Group, row, column, mean, std, n, every seed, and the paper's numbers; all digits."""
    seeds = table.seeds
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    names = ["group", *table.heads, "column"]
    writer.writerow([*names, *FIXED, *(f"seed_{seed}" for seed in seeds), *PAPER])
    for row in table.rows:
        for column in table.columns:
            if column.key in row.cells:
                cell = row.cells[column.key]
                numbers = [cell.value.seeds.get(seed) for seed in seeds]
                writer.writerow(
                    [row.group, *row.names, column.key, *_own(cell), *numbers, *_paper(cell)]
                )
    return file.getvalue()


def _own(cell: Cell) -> list[Any]:
    first = cell.value.mean if cell.text is None else cell.text
    return [first, cell.value.std, cell.value.n]


def _paper(cell: Cell) -> list[Any]:
    paper = cell.paper
    printed = [None] * 3 if paper is None else [paper.mean, paper.std, paper.seeds]
    marked = None if cell.z is None else "yes" if cell.marked else "no"
    return [*printed, cell.difference, cell.z, marked, cell.value.gap]
