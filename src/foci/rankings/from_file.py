"""Rank by scores from a table with one row per tile."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.bags import Bag
from foci.bags.matching import short
from foci.bags.tables import Table, read_table
from foci.errors import FociError
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag


@dataclass(frozen=True, eq=False)
class ScoreFile:
    """Tile scores of many slides.

    Attributes:
        path: The file.
        by: The columns that identify the tile of a row: ``("tile",)`` or ``("x", "y")``.
        slides: Places ``[M, 1 or 2]`` (tile index, or corner x and y) and scores ``[M]`` of every
            slide.
    """

    path: Path
    by: tuple[str, ...]
    slides: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]

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
    """Read a score file as for ``from-file``; the last four are kept until they change on disk.

    Raises:
        FociError: If the file cannot be read, lacks a column or has a cell that is no number.
    """
    path = Path(path)
    return _read(path, column, path.stat().st_mtime_ns if path.is_file() else 0)


@lru_cache(maxsize=4)
def _read(path: Path, column: str, changed: int) -> ScoreFile:
    if path.suffix.lower() == ".parquet":
        by, slides, numbers = _from_parquet(path, column)
    else:
        table = read_table(path, None)
        by = _file_places(table, column)
        slides = [row["slide_id"] for row in table.rows]
        numbers = [_numbers(table, name) for name in (*by, column)]
    if not len(slides):
        raise FociError(path, "has no rows", "write one row per tile")
    names, number_of = np.unique(np.array(slides, dtype=object), return_inverse=True)
    rows = np.argsort(number_of, kind="stable")
    ends = np.cumsum(np.bincount(number_of, minlength=len(names)))
    ordered = np.stack(numbers, axis=1)[rows]
    parts = zip(names, np.split(ordered, ends[:-1]), strict=True)
    return ScoreFile(path, by, {str(name): (part[:, :-1], part[:, -1]) for name, part in parts})


def _file_places(table: Table, column: str) -> tuple[str, ...]:
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
        by = _file_places(Table(tuple(schema.names), [], path, ()), column)
        table = pq.read_table(path, columns=["slide_id", *by, column])
        slides = table["slide_id"].cast(pa.string()).fill_null("").to_pylist()
        numbers = [table[name].cast(pa.float64()).to_numpy() for name in (*by, column)]
    except FociError:
        raise
    except (KeyError, OSError, TypeError, ValueError, pa.ArrowException) as error:
        what = f"cannot be read as a table of numbers ({error})"
        raise FociError(path, what, "write it again as Parquet") from error
    return by, slides, numbers


@ranking("from-file")
def from_file(bag: EmbeddedBag, *, path: str | Path, column: str = "score") -> Tensor:
    """Scores from a table; every tile of the bag must have exactly one.

    Rows of tiles that a pre-filter has dropped are ignored.

    Args:
        bag: The bag.
        path: Parquet, CSV, TSV or Excel with the columns ``slide_id``, ``tile`` (index in the
            feature file) or else ``x`` and ``y``, and the score. It is read once.
        column: Name of the score's column.
    """
    file = read_scores(path, column)
    name = file.named(bag.slide_id)
    if name is None:
        near = difflib.get_close_matches(bag.slide_id, file.slides, n=1)
        what = f"has no slide {bag.slide_id!r} ({len(file.slides)} slides)"
        fix = f"did you mean {near[0]!r}?" if near else "use the slide names of the cohort"
        raise FociError(file.path, what, fix)
    known = bag.bag or Bag(bag.slide_id, bag.features.cpu().float().numpy())
    return torch.from_numpy(_match(file, name, known))


def _match(file: ScoreFile, name: str, bag: Bag) -> NDArray[np.float64]:
    """Scores ``[N]`` of one bag, in bag order."""
    places, scores = file.slides[name]
    where = f"{file.path}, slide {bag.slide_id}"
    wanted = _places(file, bag, where)
    row_of = _rows(places, where, " and ".join(file.by))
    unknown = set(row_of).difference(wanted) if len(bag) == bag.n_total else set()
    if file.by == ("tile",):
        unknown |= {place for place in row_of if not 0 <= place[0] < bag.n_total}
    if unknown:
        what = f"{_named(min(unknown))} is none of the slide's {bag.n_total} tiles"
        raise FociError(where, what, "score the tiles of the same feature file")
    missing = [place for place in wanted if place not in row_of]
    if missing:
        share = f"{len(missing)} of {len(bag)} tiles have none"
        what = f"{_named(missing[0])} has no score ({share})"
        raise FociError(where, what, "score every tile of the bag")
    matched: NDArray[np.float64] = scores[[row_of[place] for place in wanted]]
    bad = np.flatnonzero(np.isnan(matched))
    if len(bad):
        what = f"the score of {_named(wanted[bad[0]])} is NaN ({len(bad)} of {len(bag)} tiles)"
        raise FociError(where, what, "give every tile a number")
    return matched


def _places(file: ScoreFile, bag: Bag, where: str) -> list[tuple[int, ...]]:
    """Every tile of the bag by index or by corner, as in the file."""
    if file.by == ("tile",):
        return [(int(tile),) for tile in bag.tiles]
    if bag.coords is not None:
        places = [(int(x), int(y)) for x, y in bag.coords]
        if len(set(places)) == len(places):
            return [*places]
    but = "has no coordinates" if bag.coords is None else "has two tiles at the same place"
    fix = "add a column 'tile' with the index in the feature file"
    raise FociError(where, f"names tiles by x and y, but the bag {but}", fix)


def _rows(places: NDArray[np.float64], where: str, columns: str) -> dict[tuple[int, ...], int]:
    """Row of every place; refuses fractions and repetitions."""
    if not (np.isfinite(places) & (places == np.floor(places))).all():
        raise FociError(where, f"{columns} must be whole numbers", "correct or delete those rows")
    row_of: dict[tuple[int, ...], int] = {}
    for row, place in enumerate(map(tuple, places.astype(np.int64).tolist())):
        if place in row_of:
            raise FociError(where, f"{_named(place)} occurs twice", "keep one row per tile")
        row_of[place] = row
    return row_of


def _named(place: tuple[int, ...]) -> str:
    return f"tile {place[0]}" if len(place) == 1 else f"the tile at x={place[0]}, y={place[1]}"
