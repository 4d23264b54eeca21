"""A reader study: which tiles a reader sees, in which order, and the CSV file of the labels.

Readers never learn which ranking chose a tile: the page gets tiles without ranks, and the file
holds none. :meth:`MarkBook.unblinded` adds the ranks afterwards.
"""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from foci.audits.truth import CANNOT_TELL, TUMOUR
from foci.bags.tables import read_table
from foci.errors import FociError
from foci.viewer.models import StudyTile, ViewerStudy
from foci.viewer.slides import Catalogue, compared
from foci.words import csv_text

COLUMNS = ("time", "reader", "slide_id", "tile", "x", "y", "label")
"""Of the file, one row per label. ``tile`` is its index in the feature file; ``x`` and ``y`` are
empty without coordinates."""

LABELS = (TUMOUR, "stroma", "artefact", CANNOT_TELL)
MOST_FIRST, MOST_SLIDES = 32, 200
"""Tiles of every order of a slide that a study can ask for, and slides: more nobody reads."""


class Mark(BaseModel):
    """What the page sends: what a reader calls a tile."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reader: str = Field(min_length=1, max_length=80)
    slide: int = Field(ge=0)
    tile: int = Field(ge=0)
    label: str = Field(min_length=1, max_length=40)


class MarkBook:
    """The CSV file that labels are appended to; it appears with the first. Safe for threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def add(self, catalogue: Catalogue, body: bytes) -> None:
        """Append a label that a page has sent, in a single write.

        Raises:
            FociError: If it is not as the page sends it, or its slide or tile do not exist.
        """
        row = _row(catalogue, body)
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):
            raise FociError(self.path, "is no file of its own", "name another with --marks")
        try:
            with self._lock, self.path.open("a", newline="", encoding="utf-8") as file:
                rows = [row] if file.tell() else [COLUMNS, row]
                file.write(csv_text(rows))
        except OSError as error:
            what = f"cannot be written ({error.strerror})"
            raise FociError(self.path, what, "name another with --marks") from None

    def labels(self) -> list[dict[str, str]]:
        """Every row so far, in the order in which they were given."""
        with self._lock:
            if not self.path.exists():
                return []
            table = read_table(self.path, most_rows=None)
        table.require(*COLUMNS)
        return table.rows

    def unblinded(self, catalogue: Catalogue) -> str:
        """All labels as CSV, each with the rank of its tile under every stored ranking."""
        columns = list(catalogue.details.columns)
        known: dict[str, dict[int, list[int]]] = {}
        rows: list[list[object]] = [[*COLUMNS, *(f"rank:{name}" for name in columns)]]
        numbers = {name: number for number, name in enumerate(catalogue.audit.curves.slide_ids)}
        for row in self.labels():
            name = row["slide_id"]
            if name in numbers and name not in known:
                tiles = catalogue.tiles(numbers[name])
                known[name] = {int(tile): [] for tile in tiles.tiles}
                for column in columns:
                    for rank, at in enumerate(tiles.order(column), 1):
                        known[name][int(tiles.tiles[at])].append(rank)
            ranks = known.get(name, {}).get(int(row["tile"]), [""] * len(columns))
            rows.append([*(row[column] for column in COLUMNS), *ranks])
        return csv_text(rows)

    def study(self, catalogue: Catalogue, reader: str, first: int) -> ViewerStudy:
        """The tiles of a reader's study, in an order that is the reader's own.

        Of every slide with an image: the first tiles of both rankings on the slides screen, and as
        many drawn at random, which show what chance would give. What the reader has labelled
        before carries its label, so that a study can be left and taken up again.
        """
        if not 1 <= first <= MOST_FIRST:
            fix = f"choose 1 to {MOST_FIRST}"
            raise FociError("study", f"asks for {first} tiles per ranking", fix)
        given = {
            (row["slide_id"], int(row["tile"])): row["label"]
            for row in self.labels()
            if row["reader"] == reader and row["tile"].isdecimal()
        }
        names = [name for name in compared(catalogue.audit) if name is not None]
        columns = [one for name in names for one in catalogue.details.columns_of(name)[:1]]
        found: list[StudyTile] = []
        audited = list(enumerate(catalogue.audit.curves.slide_ids))
        shown = [(number, name) for number, name in audited if name in catalogue.paths]
        for number, name in (shown or audited)[:MOST_SLIDES]:
            tiles = catalogue.tiles(number)
            chosen = {int(at) for column in columns for at in tiles.order(column)[:first]}
            draw = random.Random(f"tiles of {name}")  # noqa: S311
            chosen |= set(draw.sample(range(len(tiles)), min(first, len(tiles))))
            found += [
                StudyTile(slide=number, tile=at, label=given.get((name, int(tiles.tiles[at]))))
                for at in sorted(chosen)
            ]
        random.Random(f"order of {reader}").shuffle(found)  # noqa: S311
        return ViewerStudy(
            labels=[*LABELS, *sorted(set(given.values()) - set(LABELS))], tiles=found
        )


def _row(catalogue: Catalogue, body: bytes) -> list[object]:
    try:
        mark = Mark.model_validate_json(body)
    except ValidationError as error:
        what = f"cannot be read ({error.errors()[0]['msg']})"
        raise FociError("mark", what, "reload the page") from None
    tiles = catalogue.tiles(mark.slide)
    if mark.tile >= len(tiles):
        raise FociError("mark", "is of a tile that is not there", "reload the page")
    places = tiles.on_slide
    x, y = ("", "") if places is None else map(str, places[mark.tile].tolist())
    now = datetime.now(UTC).isoformat(timespec="seconds")
    label = " ".join(mark.label.split())
    if not label or not mark.reader.strip():
        raise FociError("mark", "has no label or no reader", "enter both")
    slide, tile = tiles.source(mark.tile), int(tiles.tiles[mark.tile])
    return [now, mark.reader.strip(), slide, tile, x, y, label]
