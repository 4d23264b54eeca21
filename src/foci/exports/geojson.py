"""Tiles as GeoJSON objects that QuPath imports: one detection per tile."""

from __future__ import annotations

import json
import math
import uuid
from typing import Any

from foci.exports.tables import RankedColumn, RankedSlide

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "foci.tiles")
"""Of the tiles' version-5 UUIDs: the same tile gets the same one at every export."""


def feature_collection(
    ranked: RankedSlide,
    column: RankedColumn,
    colour: tuple[int, int, int],
    origin: tuple[int, int] = (0, 0),
) -> dict[str, Any]:
    """The first tiles of one ranking, for QuPath 0.4 or later.

    Args:
        ranked: The slide.
        column: The ranking.
        colour: Red, green and blue, 0 to 255.
        origin: Where QuPath begins to count: the top-left corner of the scanned part.
    """
    corners, side, tiles = ranked.corners, ranked.side, ranked.tiles
    features = []
    for rank, position in enumerate(column.order, 1):
        x, y = (int(a) - b for a, b in zip(corners[position], origin, strict=True))
        right, bottom = x + side, y + side
        outline = [[x, y], [right, y], [right, bottom], [x, bottom], [x, y]]
        measured = {
            "foci:rank": rank,
            "foci:score": float(tiles.scores[column.name][position]),
            "foci:p revealed": float(column.revealed[rank - 1]),
            "foci:delta p": float(column.delta_p[rank - 1]),
        }
        features.append(
            {
                "type": "Feature",
                "id": tile_uuid(ranked.slide.slide_id, column.name, int(tiles.tiles[position])),
                "geometry": {"type": "Polygon", "coordinates": [outline]},
                "properties": {
                    "objectType": "detection",
                    "name": f"{column.name} {rank}",
                    "classification": {"name": f"FOCI {column.name}", "color": list(colour)},
                    "isLocked": True,
                    "measurements": {k: v for k, v in measured.items() if math.isfinite(v)},
                },
            }
        )
    return {"type": "FeatureCollection", "features": features}


def tile_uuid(slide_id: str, column: str, tile: int) -> str:
    """Stable identifier of a tile under a ranking, so that a second import replaces the first."""
    return str(uuid.uuid5(NAMESPACE, "\n".join((slide_id, column, str(tile)))))


def to_text(collection: dict[str, Any]) -> str:
    """As JSON; NaN and infinity, which QuPath refuses, are an error."""
    return json.dumps(collection, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
