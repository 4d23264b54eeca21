"""Read a table of tile scores, by slide and tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foci.bags.cohort.matching import short
from foci.bags.tables import Table, read_table
from foci.errors import FociError

Places = NDArray[np.float64]
"""``[M, 1]`` tile indices or ``[M, 2]`` corners (x, y), as they stand in the file."""


@dataclass(frozen=True, eq=False)
class ScoreFile:
    """Tile scores of many slides.

    Attributes:
        path: The file.
        by: The columns that identify the tile of a row: ``("tile",)`` or ``("x", "y")``.
        slides: Places ``[M, 1 or 2]`` and scores ``[M]`` of every slide.
    """

    path: Path
    by: tuple[str, ...]
    slides: dict[str, tuple[Places, NDArray[np.float64]]]

    def named(self, slide_id: str) -> str | None:
        """What the file calls a slide: its name, but for a file ending or a TCGA UUID."""
        if slide_id in self.slides:
            return slide_id
        alike = self._short.get(short(slide_id), [])
        return alike[0] if len(alike) == 1 else None

    @cached_property
    def _short(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name in self.slides:
            names.setdefault(short(name), []).append(name)
        return names


def read_scores(path: str | Path, column: str = "score") -> ScoreFile:
    """Read a score file; the last four are kept until they change on disk.

    Args:
        path: CSV, TSV or Excel (:func:`foci.bags.tables.read_table`), or Parquet. Columns are
            ``slide_id``, ``tile`` (index in the feature file) or else ``x`` and ``y``, and the
            score.
        column: Name of the score's column.

    Raises:
        FociError: If the file cannot be read, lacks a column or has a cell that is no number.
    """
    path = Path(path)
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    return _read(path, column, changed)


@lru_cache(maxsize=4)
def _read(path: Path, column: str, changed: int) -> ScoreFile:
    if path.suffix.lower() == ".parquet":
        by, slides, numbers = _from_parquet(path, column)
    else:
        table = read_table(path)
        by = _places(table, column)
        slides = [row["slide_id"] for row in table.rows]
        numbers = [_numbers(table, name) for name in (*by, column)]
    if not len(slides):
        raise FociError(path, "has no rows", "write one row per tile")
    names, number_of = np.unique(np.array(slides, dtype=object), return_inverse=True)
    rows = np.argsort(number_of, kind="stable")
    ends = np.cumsum(np.bincount(number_of, minlength=len(names)))
    ordered = np.stack(numbers, axis=1)[rows]
    parts = np.split(ordered, ends[:-1])
    grouped = {
        str(name): (part[:, :-1], part[:, -1]) for name, part in zip(names, parts, strict=True)
    }
    return ScoreFile(path, by, grouped)


def _places(table: Table, column: str) -> tuple[str, ...]:
    """The columns that identify the tile; refuses a table that lacks a column."""
    table.require("slide_id")
    table.require(column, fix="name the column with column=...")
    if "tile" in table.columns:
        return ("tile",)
    table.require("x", "y", fix="add a column 'tile' with the index in the feature file")
    return ("x", "y")


def _numbers(table: Table, column: str) -> NDArray[np.float64]:
    numbers = np.empty(len(table.rows))
    for index, row in enumerate(table.rows):
        try:
            numbers[index] = float(row[column])
        except ValueError:
            what = f"the cell {column!r} is {row[column]!r}, not a number"
            raise FociError(table.line(index), what, "correct it or delete the row") from None
    return numbers


def _from_parquet(
    path: Path, column: str
) -> tuple[tuple[str, ...], Sequence[str], list[NDArray[np.float64]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise FociError(path, "does not exist", "give a .parquet, .csv, .tsv or .xlsx file")
    try:
        schema = pq.read_schema(path)
        by = _places(Table(tuple(schema.names), [], path, ()), column)
        table = pq.read_table(path, columns=["slide_id", *by, column])
        slides = table["slide_id"].cast(pa.string()).fill_null("").to_pylist()
        numbers = [table[name].cast(pa.float64()).to_numpy() for name in (*by, column)]
    except FociError:
        raise
    except (KeyError, OSError, TypeError, ValueError, pa.ArrowException) as error:
        what = f"cannot be read as a table of numbers ({error})"
        raise FociError(path, what, "write it again as Parquet") from error
    return by, slides, numbers
