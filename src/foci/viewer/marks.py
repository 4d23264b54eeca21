"""A reader's marks on tiles, appended to a CSV file: one row per mark, for reader studies."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from foci.errors import FociError
from foci.viewer.slides import Catalogue
from foci.words import csv_text

COLUMNS = (
    "time", "reader", "slide_id", "tile", "x", "y", "ranking", "rank", "opinion", "blinded",
)  # fmt: skip
"""Of the file. ``tile`` is its index in the feature file; ``x`` and ``y`` are empty without
coordinates."""


class Mark(BaseModel):
    """What the page sends: what a reader thinks of a tile, and under which ranking it was shown."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reader: str = Field(min_length=1, max_length=80)
    slide: int = Field(ge=0)
    tile: int = Field(ge=0)
    ranking: str = Field(max_length=80)
    rank: int = Field(ge=1)
    opinion: Literal["relevant", "irrelevant", "unsure"]
    blinded: bool


class MarkBook:
    """The CSV file that marks are appended to; it appears with the first. Safe for threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def add(self, catalogue: Catalogue, body: bytes) -> None:
        """Append a mark that a page has sent, in a single write.

        Raises:
            FociError: If it is not as the page sends it, or its slide, tile or rank do not exist.
        """
        row = _row(catalogue, body)
        with self._lock, self.path.open("a", newline="", encoding="utf-8") as file:
            rows = [row] if file.tell() else [COLUMNS, row]
            file.write(csv_text(rows))


def _row(catalogue: Catalogue, body: bytes) -> list[object]:
    try:
        mark = Mark.model_validate_json(body)
    except ValidationError as error:
        what = f"cannot be read ({error.errors()[0]['msg']})"
        raise FociError("mark", what, "reload the page") from None
    tiles = catalogue.tiles(mark.slide)
    known = mark.ranking in tiles.scores and max(mark.tile + 1, mark.rank) <= len(tiles)
    if not known or tiles.order(mark.ranking)[mark.rank - 1] != mark.tile:
        raise FociError("mark", "is of a tile that is not there", "reload the page")
    x, y = ("", "") if tiles.coords is None else map(str, tiles.coords[mark.tile].tolist())
    now = datetime.now(UTC).isoformat(timespec="seconds")
    tile, blinded = int(tiles.tiles[mark.tile]), int(mark.blinded)
    row = now, mark.reader, tiles.slide_id, tile, x, y, mark.ranking, mark.rank, mark.opinion
    return [*row, blinded]
