"""A reader's marks on tiles, appended to a CSV file: one row per mark, for reader studies."""

from __future__ import annotations

import csv
import io
import threading
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from foci.errors import FociError
from foci.viewer.slides import Catalogue

Opinion = Literal["relevant", "irrelevant", "unsure"]


class _Sent(BaseModel):
    """What the page sends."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reader: str = Field(min_length=1, max_length=80)
    slide: int = Field(ge=0)
    tile: int = Field(ge=0)
    ranking: str = Field(max_length=80)
    rank: int = Field(ge=1)
    opinion: Opinion
    blinded: bool


@dataclass(frozen=True)
class Mark:
    """One mark: what a reader said of a tile, and under which ranking it was shown.

    ``tile`` is its index in the feature file; ``x`` and ``y`` are empty without coordinates.
    """

    time: str
    reader: str
    slide_id: str
    tile: int
    x: str
    y: str
    ranking: str
    rank: int
    opinion: str
    blinded: int

    @classmethod
    def of(cls, catalogue: Catalogue, body: bytes) -> Mark:
        """Read what a page has sent; the slide, the tile and its rank must exist.

        Raises:
            FociError: If anything of it is not as the page sends it.
        """
        try:
            sent = _Sent.model_validate_json(body)
        except ValidationError as error:
            what = f"cannot be read ({error.errors()[0]['msg']})"
            raise FociError("mark", what, "reload the page") from None
        tiles = catalogue.tiles(sent.slide)
        known = sent.ranking in tiles.scores and max(sent.tile + 1, sent.rank) <= len(tiles)
        if not known or tiles.order(sent.ranking)[sent.rank - 1] != sent.tile:
            raise FociError("mark", "is of a tile that is not there", "reload the page")
        x, y = ("", "") if tiles.coords is None else map(str, tiles.coords[sent.tile].tolist())
        return cls(
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            reader=sent.reader,
            slide_id=tiles.slide_id,
            tile=int(tiles.tiles[sent.tile]),
            x=x,
            y=y,
            ranking=sent.ranking,
            rank=sent.rank,
            opinion=sent.opinion,
            blinded=int(sent.blinded),
        )


class MarkBook:
    """The CSV file that marks are appended to; safe for threads.

    Args:
        path: The file; it appears with the first mark.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def add(self, mark: Mark) -> None:
        """Append one row, in a single write."""
        with self._lock, self.path.open("a", newline="", encoding="utf-8") as file:
            rows = [] if file.tell() else [[field.name for field in fields(Mark)]]
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([*rows, [*map(_safe, astuple(mark))]])
            file.write(text.getvalue())


def _safe(value: object) -> object:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
