"""What all importers of label tables share: their interface, split names, and split tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foci.bags.bag import Slide, SlideRows
from foci.bags.matching import Names, parse_barcode
from foci.bags.tables import Table
from foci.errors import CohortError
from foci.words import counted


@dataclass(frozen=True)
class ImportOptions:
    """Options for what a table alone does not tell.

    Attributes:
        slide_table: STAMP's second table.
        label_column: The column that holds the label.
        fold: Which of several splits.
    """

    slide_table: Path | None = None
    label_column: str | None = None
    fold: int | None = None


@dataclass(frozen=True)
class Importer:
    """One format of label table.

    Attributes:
        description: Whose format, and its columns, in one line for people.
        matches: Whether a header is of this format.
        read: The slides of such a table.
        options: Names of the :class:`ImportOptions` it understands.
    """

    description: str
    matches: Callable[[tuple[str, ...]], bool]
    read: Callable[[Table, ImportOptions], SlideRows]
    options: tuple[str, ...] = ()


_SPLITS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "tune", "dev"),
    "test": ("test", "testing"),
}
SPLIT_NAMES = {name: split for split, names in _SPLITS.items() for name in names}
"""What people call the three splits. ``eval`` is missing on purpose: it means validation to some
and test to others, and mistaking one for the other spoils a study."""


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


def split_column(table: Table, column: str) -> list[str | None]:
    """A column of split names as train, val or test; an empty cell is None."""
    return [
        split_name(row[column], table.line(index)) if row[column] else None
        for index, row in enumerate(table.rows)
    ]


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
    parts = []
    if tcga := len(slide_ids) - alone:
        parts.append(f"{tcga} slides take the patient of their TCGA barcode")
    if alone:
        parts.append(
            f"{alone} slides count as one patient each, so that a patient in two splits "
            "would go unnoticed"
        )
    return f"{why}: " + "; ".join(parts)


# Split tables, which say which slides are in which split.
#
# CLAM writes one ``splits_<k>.csv`` per fold, in three forms: columns ``train, val, test`` that
# list slide names, with or without an index column before them, and the ``_bool`` form, one row per
# slide with True and False. A table of ``slide_id, split`` is understood as well.

_FOLD = re.compile(r"splits_(\d+)\.csv")
_NAMED = 3


def choose_splits(
    splits: str | Path | None, fold: int | None
) -> tuple[Path | None, int | None, tuple[str, ...]]:
    """The split table of a fold: the file itself, or that fold's file of a folder.

    Returns:
        The table, if splits were given; the fold, where it is still to be found in the label table;
        and a note on which fold was taken, where nobody chose one.

    Raises:
        CohortError: If the folder holds no folds, or not this one.
    """
    if splits is None or not Path(splits).is_dir():
        return None if splits is None else Path(splits), fold, ()
    files = folds_of(Path(splits))
    chosen = min(files) if fold is None else fold
    if chosen not in files:
        what = f"has no fold {chosen} (it has {', '.join(map(str, files))})"
        raise CohortError(splits, what, "choose one with --fold")
    if fold is not None or len(files) == 1:
        return files[chosen], None, ()
    note = f"fold {chosen} of {len(files)} is used; choose another with --fold"
    return files[chosen], None, (note,)


def folds_of(folder: Path) -> dict[int, Path]:
    """The split tables of a folder by fold, in order; a folder without any is refused."""
    found = {int(m[1]): p for p in folder.iterdir() if (m := _FOLD.fullmatch(p.name))}
    if not found:
        fix = "give the folder that holds them, or a split table"
        raise CohortError(folder, "holds no splits_0.csv, splits_1.csv, ...", fix)
    return dict(sorted(found.items()))


def apply_splits(slides: Sequence[Slide], table: Table, among: str) -> SlideRows:
    """Assign the splits of a split table; slides that are not in it have none.

    Slides that only the split table names are left out, with a note: published splits often
    name slides that nobody has labelled.

    Args:
        slides: The cohort.
        table: The split table.
        among: Where the slides come from, for messages.

    Raises:
        CohortError: If a slide is in two splits, a name fits several slides, or the split table
            names no slide of the cohort.
    """
    known = Names(slide.slide_id for slide in slides)
    chosen: dict[str, str] = {}
    unknown: list[str] = []
    for name, split in _members(table, known):
        # pandas writes a numeric name in a column with gaps as 123.0
        whole = name.removesuffix(".0")
        found = known.like(name if name in known.exact or whole not in known.exact else whole)
        if len(found) > 1:
            what = f"{name!r} fits several slides of {among} ({', '.join(sorted(found)[:3])})"
            raise CohortError(table.path, what, "write the full name into the split table")
        if not found:
            unknown.append(name)
        elif chosen.setdefault(found[0], split) != split:
            what = f"slide {found[0]!r} is in both {chosen[found[0]]} and {split}"
            raise CohortError(table.path, what, "keep it in one of them")
    outside = ", ".join(unknown[:_NAMED]) + (", ..." if len(unknown) > _NAMED else "")
    if unknown and not chosen:
        what = f"none of its {counted(len(unknown), 'slide')} is in {among} ({outside})"
        raise CohortError(table.path, what, "give the splits of this cohort, with its slide names")
    assigned = tuple(replace(slide, split=chosen.get(slide.slide_id)) for slide in slides)
    notes = []
    if unknown:
        n = counted(len(unknown), "slide")
        notes.append(f"left out: {n} of {table.path.name} not in {among} ({outside})")
    if any(slide.split for slide in slides):
        notes.append(f"the splits of {among} are replaced by {table.path.name}")
    if left := sum(slide.split is None for slide in assigned):
        notes.append(f"{left} slides of {among} are in no split of {table.path.name}")
    return SlideRows(assigned, tuple(notes))


def _members(table: Table, known: Names) -> Iterator[tuple[str, str]]:
    """Every (slide name, split) of the table."""
    if {"slide_id", "split"} <= set(table.columns):
        pairs = zip(table.filled("slide_id"), split_column(table, "split"), strict=True)
        return ((name, split) for name, split in pairs if split is not None)
    columns = [name for name in table.columns if name.lower() in SPLIT_NAMES]
    index = [name for name in table.columns if name not in columns]
    if not columns or len(index) > 1:
        what = f"is no split table (its columns: {', '.join(table.columns)})"
        raise CohortError(table.path, what, "give columns train, val, test, or slide_id, split")
    cells = [(row, name) for row in table.rows for name in columns if row[name]]
    values = {row[name] for row, name in cells}
    where = str(table.path)
    if index and {value.lower() for value in values} <= {"true", "false"}:
        return (
            (row[index[0]], split_name(name, where))
            for row, name in cells
            if row[name].lower() == "true"
        )
    if _is_descriptor(table, index, values, known):
        what = "counts slides per class but does not name them"
        fix = "give the file without '_descriptor' in its name"
        raise CohortError(table.path, what, fix)
    return ((row[name], split_name(name, where)) for row, name in cells)


def _is_descriptor(table: Table, index: list[str], values: set[str], known: Names) -> bool:
    """CLAM's table of class counts, ``splits_0_descriptor.csv``, by its name or its content."""
    if table.path.stem.endswith("_descriptor"):
        return True
    numbered = not index or [row[index[0]] for row in table.rows] == [
        str(number) for number in range(len(table.rows))
    ]
    numbers = {value.removesuffix(".0") for value in values}
    counts = all(number.isdecimal() for number in numbers)
    return not numbered and counts and not any(known.like(number) for number in numbers)
