"""Tiles as a CSV table: one row per ranking and tile."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from foci.bags.tables import write_csv
from foci.exports.ranked import RankedColumn, RankedSlide

COLUMNS = (
    "slide_id", "ranking", "rank", "tile", "x", "y", "side", "score", "p_revealed", "delta_p",
    "witness",
)  # fmt: skip


def write_tiles(ranked: RankedSlide, path: Path) -> None:
    """Write the first tiles of every ranking; ``witness`` is empty where nothing is annotated."""
    rows = [row for column in ranked.columns for row in _rows(ranked, column)]
    write_csv(path, list(COLUMNS), rows)


def _rows(ranked: RankedSlide, column: RankedColumn) -> Iterator[dict[str, str]]:
    placed, witness = ranked.tiles.coords, ranked.witness
    scores = ranked.tiles.scores[column.name]
    for rank, at in enumerate(column.order, 1):
        x, y = ("", "") if placed is None else map(str, placed[at].tolist())
        yield {
            "slide_id": ranked.slide.slide_id,
            "ranking": column.name,
            "rank": str(rank),
            "tile": str(ranked.tiles.tiles[at]),
            "x": x,
            "y": y,
            "side": str(ranked.slide.patch_size or ""),
            "score": repr(float(scores[at])),
            "p_revealed": _number(column.revealed[rank - 1]),
            "delta_p": _number(column.delta_p[rank - 1]),
            "witness": "" if witness is None else str(int(witness[at])),
        }


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6f}"
