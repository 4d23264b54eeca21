"""The interface of an importer: the columns it recognises, and how it reads slides."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foci.bags.matching import case_of, parse_barcode, short
from foci.bags.slide import Slide
from foci.bags.tables import Table, read_table
from foci.errors import CohortError
from foci.words import counted


@dataclass(frozen=True)
class Imported:
    """Slides of a label table, and notes on what was assumed."""

    slides: tuple[Slide, ...]
    notes: tuple[str, ...] = ()


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
    read: Callable[[Table, ImportOptions], Imported]
    options: tuple[str, ...] = ()


# Validate cells of a label table: filled, unique, known split names.


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


# A folder of CLAM's splits: ``splits_0.csv``, ``splits_1.csv``, ... one per fold.


_FOLD = re.compile(r"splits_(\d+)\.csv")


@dataclass(frozen=True)
class ChosenSplits:
    """The split table to read.

    Attributes:
        path: The table; None where no splits were given.
        fold: The fold, where it is still to be found in the label table.
        notes: Which fold was taken, where nobody chose one.
    """

    path: Path | None
    fold: int | None
    notes: tuple[str, ...] = ()


def choose_splits(splits: str | Path | None, fold: int | None) -> ChosenSplits:
    """The split table of a fold: the file itself, or that fold's file of a folder.

    Raises:
        CohortError: If the folder holds no folds, or not this one.
    """
    if splits is None or not Path(splits).is_dir():
        return ChosenSplits(None if splits is None else Path(splits), fold)
    folder = Path(splits)
    files = folds_of(folder)
    chosen = min(files) if fold is None else fold
    if chosen not in files:
        known = ", ".join(map(str, sorted(files)))
        raise CohortError(
            folder, f"has no fold {chosen} (it has {known})", "choose one with --fold"
        )
    notes: tuple[str, ...] = ()
    if fold is None and len(files) > 1:
        notes = (f"fold {chosen} of {len(files)} is used; choose another with --fold",)
    return ChosenSplits(files[chosen], None, notes)


def folds_of(folder: Path) -> dict[int, Path]:
    """The split tables of a folder by fold, in order.

    Raises:
        CohortError: If the folder holds none.
    """
    found = {int(m[1]): p for p in folder.iterdir() if (m := _FOLD.fullmatch(p.name))}
    if not found:
        fix = "give the folder that holds them, or a split table"
        raise CohortError(folder, "holds no splits_0.csv, splits_1.csv, ...", fix)
    return dict(sorted(found.items()))


# CLAM's ``splits_<k>.csv``: which slides are in which split.
#
# Three forms exist: columns ``train, val, test`` that list slide names, with or without an index
# column before them, and the ``_bool`` form, one row per slide with True and False. A table of
# ``slide_id, split`` is understood as well.


_NAMED = 3


def apply_splits(slides: Sequence[Slide], table: Table, among: str = "the label table") -> Imported:
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
    find = _Finder(slides)
    chosen: dict[str, str] = {}
    unknown: list[str] = []
    for name, split in _members(table, find):
        slide_id = find(name)
        if slide_id is None and (several := find.alike(name)):
            what = f"{name!r} fits several slides of {among} ({', '.join(sorted(several)[:3])})"
            raise CohortError(table.path, what, "write the full name into the split table")
        if slide_id is None:
            unknown.append(name)
        elif chosen.setdefault(slide_id, split) != split:
            what = f"slide {slide_id!r} is in both {chosen[slide_id]} and {split}"
            raise CohortError(table.path, what, "keep it in one of them")
    outside = ", ".join(unknown[:_NAMED]) + (", ..." if len(unknown) > _NAMED else "")
    if unknown and not chosen:
        what = f"none of its {counted(len(unknown), 'slide')} is in {among} ({outside})"
        raise CohortError(table.path, what, "give the splits of this cohort, with its slide names")
    placed = tuple(replace(slide, split=chosen.get(slide.slide_id)) for slide in slides)
    notes = []
    if unknown:
        n = counted(len(unknown), "slide")
        notes.append(f"left out: {n} of {table.path.name} not in {among} ({outside})")
    if any(slide.split for slide in slides):
        notes.append(f"the splits of {among} are replaced by {table.path.name}")
    if left := sum(slide.split is None for slide in placed):
        notes.append(f"{left} slides of {among} are in no split of {table.path.name}")
    return Imported(placed, tuple(notes))


class _Finder:
    """Finds slides of the cohort by the names that a split table uses.

    The name may lack a TCGA UUID or a file ending, or have one too many, and pandas writes a
    numeric name in a column with gaps as ``123.0``.
    """

    def __init__(self, slides: Iterable[Slide]) -> None:
        self.ids = {slide.slide_id for slide in slides}
        self.short: dict[str, list[str]] = defaultdict(list)
        for slide_id in self.ids:
            self.short[short(slide_id)].append(slide_id)

    def __call__(self, name: str) -> str | None:
        for candidate in (name, name.removesuffix(".0")):
            if candidate in self.ids:
                return candidate
        alike = self.alike(name)
        return alike[0] if len(alike) == 1 else None

    def alike(self, name: str) -> list[str]:
        """Slides with the same name but for file ending and UUID."""
        return self.short.get(short(name), [])


def _members(table: Table, find: _Finder) -> Iterator[tuple[str, str]]:
    """Every (slide name, split) of the table."""
    if {"slide_id", "split"} <= set(table.columns):
        names = filled(table, "slide_id")
        pairs = zip(names, splits(table, "split"), strict=True)
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
    if _is_descriptor(table, index, values, find):
        what = "counts slides per class but does not name them"
        fix = "give the file without '_descriptor' in its name"
        raise CohortError(table.path, what, fix)
    return ((row[name], split_name(name, where)) for row, name in cells)


def _is_descriptor(table: Table, index: list[str], values: set[str], find: _Finder) -> bool:
    if table.path.stem.endswith("_descriptor"):
        return True
    numbered = not index or [row[index[0]] for row in table.rows] == [
        str(number) for number in range(len(table.rows))
    ]
    counts = all(value.removesuffix(".0").isdecimal() for value in values)
    return not numbered and counts and not any(find(value) for value in values)


# A folder of feature files without a label table: every file is a slide.


def slides_of_files(
    files: Mapping[str, Path],
    *,
    splits: str | Path | None = None,
    slide_table: str | Path | None = None,
    label_column: str | None = None,
    fold: int | None = None,
) -> Imported:
    """Slides without labels; the patients are those of TCGA barcodes, where there are any.

    Args:
        files: Slide name to feature file.
        splits: A split table to apply, or a folder of folds.
        slide_table: Refused, as it says something of a label table only.
        label_column: Refused likewise.
        fold: Which fold of a folder of splits; refused without one.

    Raises:
        CohortError: If an option needs a label table, or the split table does not fit.
    """
    chosen = choose_splits(splits, fold)
    options = {"slide_table": slide_table, "label_column": label_column, "fold": chosen.fold}
    for option, value in options.items():
        if value is not None:
            fix = "give the label table, or leave it out"
            raise CohortError(f"{spelled(option)} {value}", "needs --labels", fix)
    slides = tuple(Slide(name, case_of(name), feature_path=path) for name, path in files.items())
    notes = (derived_cases_note(list(files), "there is no label table that names patients"),)
    if chosen.path is None:
        return Imported(slides, notes)
    placed = apply_splits(slides, read_table(chosen.path), "the feature folder")
    return Imported(placed.slides, notes + chosen.notes + placed.notes)
