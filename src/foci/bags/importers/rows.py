"""Validate cells of a label table: filled, unique, known split names."""

from __future__ import annotations

from collections.abc import Collection

from foci.bags.cohort.tcga import parse_barcode
from foci.bags.tables import Table
from foci.errors import CohortError

_SPLITS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "tune", "dev"),
    "test": ("test", "testing"),
}
SPLIT_NAMES = {name: split for split, names in _SPLITS.items() for name in names}
"""What people call the three splits. ``eval`` is missing on purpose: it means validation to some
and test to others, and mistaking one for the other spoils a study."""


def filled(table: Table, column: str) -> list[str]:
    """The values of a column; an empty cell is refused."""
    values = [row[column] for row in table.rows]
    for index, value in enumerate(values):
        if not value:
            raise CohortError(
                table.line(index), f"the cell {column!r} is empty", "fill it or delete the row"
            )
    return values


def unique(table: Table, values: list[str], kind: str = "slide") -> list[str]:
    """The same values; a duplicate is refused."""
    first: dict[str, int] = {}
    for index, value in enumerate(values):
        if value in first:
            line = table.lines[first[value]]
            what = f"{kind} {value!r} is already in line {line}"
            raise CohortError(table.line(index), what, "keep one of the rows")
        first[value] = index
    return values


def splits(table: Table, column: str) -> list[str | None]:
    """A column of split names as train, val or test; an empty cell is None."""
    return [
        split_name(row[column], table.line(index)) if row[column] else None
        for index, row in enumerate(table.rows)
    ]


def split_name(text: str, where: str) -> str:
    """Normalise a split name to ``train``, ``val`` or ``test``.

    >>> split_name("Validation", "labels.csv, line 2")
    'val'
    """
    name = SPLIT_NAMES.get(text.lower())
    if name is None:
        what = f"split {text!r} is not train, val or test"
        if text.lower() == "eval":
            what = "split 'eval' may mean validation or test"
        raise CohortError(where, what, "write train, val or test")
    return name


def spelled(option: str) -> str:
    """An option as people type it.

    >>> spelled("label_column")
    '--label-column'
    """
    return f"--{option.replace('_', '-')}"


def choose_label(table: Table, taken: Collection[str], chosen: str | None) -> str:
    """The label column: the chosen one, or the only one that is not ``taken``."""
    if chosen is not None:
        table.require(chosen, fix="name another with --label-column")
        return chosen
    free = [name for name in table.columns if name and name not in taken]
    if len(free) == 1:
        return free[0]
    if not free:
        raise CohortError(table.path, "has no label column", "add one")
    what = f"has several columns that may be the label ({', '.join(free)})"
    raise CohortError(table.path, what, "name it with --label-column")


def derived_cases_note(slide_ids: list[str], why: str = "the table names no patients") -> str:
    """Note on how patients were derived where no column names them."""
    alone = sum(parse_barcode(slide_id) is None for slide_id in slide_ids)
    tcga = len(slide_ids) - alone
    parts = []
    if tcga:
        parts.append(f"{tcga} slides take the patient of their TCGA barcode")
    if alone:
        parts.append(
            f"{alone} slides count as one patient each, so that a patient in two splits "
            "would go unnoticed"
        )
    return f"{why}: " + "; ".join(parts)
