"""CLAM's ``splits_<k>.csv``: which slides are in which split.

Three forms exist: columns ``train, val, test`` that list slide names, with or without an index
column before them, and the ``_bool`` form, one row per slide with True and False. A table of
``slide_id, split`` is understood as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from foci.bags.cohort.matching import short
from foci.bags.cohort.slide import Slide
from foci.bags.importers.importer import Imported
from foci.bags.importers.rows import SPLIT_NAMES, filled, split_name, splits
from foci.bags.tables import Table
from foci.errors import CohortError
from foci.words.plural import counted

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
