"""Split tables, which say which slides are in which split.

CLAM writes one ``splits_<k>.csv`` per fold, in three forms: columns ``train, val, test`` that list
slide names, with or without an index column before them, and the ``_bool`` form, one row per slide
with True and False. A table of ``slide_id, split`` is understood as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from foci.bags.bag import Slide, SlideRows
from foci.bags.matching import Names
from foci.bags.tables import Table
from foci.errors import CohortError
from foci.words import counted, listed

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


_FOLD = re.compile(r"splits_(\d+)\.csv")


def choose_splits(
    splits: str | Path | None, fold: int | None
) -> tuple[Path | None, int | None, tuple[str, ...]]:
    """The split table of a fold: the file itself, or that fold's file of a folder.

    With it come the fold, where it is still to be found in the label table, and a note on which
    fold was taken, where nobody chose one.
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
    name slides that nobody has labelled. ``among`` says where the slides come from, for messages.

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
    n, outside = counted(len(unknown), "slide"), listed(unknown)
    if unknown and not chosen:
        what = f"none of its {n} is in {among} ({outside})"
        raise CohortError(table.path, what, "give the splits of this cohort, with its slide names")
    assigned = tuple(replace(slide, split=chosen.get(slide.slide_id)) for slide in slides)
    notes = []
    if unknown:
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
