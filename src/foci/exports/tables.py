"""What is exported of an audit: which slides and rankings, and their first tiles.

The tiles are written as CSV, and as GeoJSON objects that QuPath imports.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foci.audits import AuditedSlide, RankedTiles, StoredAudit
from foci.audits.audit import Marks
from foci.audits.folder import Order, column
from foci.audits.measure import MeasuredSlides, followed
from foci.bags.tables import write_csv
from foci.errors import FociError, SlideError
from foci.reports.payload import by_interest, count_or_none, stored_columns
from foci.reveal import Curve

MOST_TELLING = 6
"""Slides that are exported if none is named."""

WITHOUT_COUNT = 32
"""Tiles shown where a slide has no MSK, or no decisive K, under a ranking."""


def slides_to_export(
    audit: StoredAudit, named: Sequence[str] = (), most_telling: int = MOST_TELLING
) -> list[str]:
    """The named slides, or the most telling ones: hardest, most compact, and between, in turn."""
    known = audit.curves.slide_ids
    if not named:
        return [known[row] for row in by_interest(audit.measured().hardest_first)[:most_telling]]
    for name in named:
        if name not in known:
            why = {slide.slide_id: slide.skipped for slide in audit.skipped}.get(name)
            what = f"was skipped ({why})" if why else f"is not in {audit.folder}"
            raise FociError(name, what, f"slides: {', '.join(known[:3])}, ...")
    return list(dict.fromkeys(named))


def read_names(path: Path) -> list[str]:
    """Slides of a list: one name per line, or the column ``slide_id`` of a CSV file."""
    if not path.is_file():
        raise FociError(path, "does not exist", "give a file with one slide per line")
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    rows = [line.split(",") for line in lines if line]
    at = rows[0].index("slide_id") if rows and "slide_id" in rows[0] else None
    names = [row[0] for row in rows] if at is None else [row[at] for row in rows[1:]]
    if not names:
        raise FociError(path, "names no slide", "write one slide per line")
    return names


def columns_to_export(measured: MeasuredSlides, named: Sequence[str] = ()) -> list[Order]:
    """Rankings whose orders are stored, the first seed of each; or those named.

    A name is ``"native"``, or with a seed ``"selector-1"``.
    """
    curves = measured.curves
    stored = stored_columns(curves)
    firsts = {ranking: (ranking, seed) for ranking, seed in reversed(stored.values())}
    if not named:
        return [firsts[ranking] for ranking in curves.rankings if ranking in firsts]
    chosen = firsts | stored
    for name in named:
        if name not in chosen:
            what = "is not a stored ranking of this audit"
            raise FociError(name, what, f"known: {', '.join(stored)}")
    return [chosen[name] for name in named]


def count_of(measured: MeasuredSlides, row: int, chosen: Order, k: str) -> tuple[int, bool]:
    """How many tiles of a slide are exported, and whether the slide has the count asked for.

    ``k`` is ``"msk"``, ``"decisive"``, ``"all"`` or a number.
    """
    n = int(measured.slides.n_tiles[row])
    if k == "all":
        return n, True
    if k in ("msk", "decisive"):
        count = measured_count(measured, row, chosen, k)
        return (min(n, WITHOUT_COUNT), False) if count is None else (count, True)
    if not (k.isascii() and k.isdigit() and len(k) < 10) or int(k) < 1:
        raise FociError(
            f"--k {k}", "is not a number of tiles", "give msk, decisive, all or a number"
        )
    return min(int(k), n), True


def measured_count(measured: MeasuredSlides, row: int, chosen: Order, which: str) -> int | None:
    """MSK or decisive K of one slide under one ranking; None where there is none."""
    own = measured.tables["prediction"]
    value = (own.msk if which == "msk" else own.decisive)[own.orders.index(chosen), row]
    return count_or_none(value)


@dataclass(frozen=True, eq=False)
class RankedColumn:
    r"""First K tiles of one ranking.

    Attributes:
        name: Ranking, with its seed.
        order: ``[K]`` positions in the bag.
        revealed: ``[K]`` probability of the predicted class from the tiles up to this one.
        delta_p: ``[K]`` :math:`\Delta p(r) = p(\text{full}) - p(\text{without the first } r)`.
        msk: Minimum Sufficient K; None where not reached.
        as_asked: False where the count asked for does not exist, and another was taken.

    Both arrays hold NaN at counts that the audit did not measure.
    """

    name: str
    order: NDArray[np.int64]
    revealed: NDArray[np.float64]
    delta_p: NDArray[np.float64]
    msk: int | None
    as_asked: bool

    def __len__(self) -> int:
        return len(self.order)


@dataclass(frozen=True, eq=False)
class RankedSlide:
    """One slide with its rankings.

    Attributes:
        slide: The audited slide.
        tiles: Its tiles and scores.
        columns: The rankings.
        predicted: Predicted class.
        p: Its probability on the full bag.
        witness: ``[N]`` bool, annotated tiles; None where nothing is annotated.
    """

    slide: AuditedSlide
    tiles: RankedTiles
    columns: tuple[RankedColumn, ...]
    predicted: str
    p: float
    witness: NDArray[np.bool_] | None

    @property
    def corners(self) -> NDArray[np.int64]:
        """``[N, 2]`` top-left corners in level-0 pixels; an error where there are none."""
        return corners_of(self.slide, self.tiles)

    @property
    def side(self) -> int:
        """Side of a tile in level-0 pixels."""
        return self.slide.patch_size or 1


def corners_of(slide: AuditedSlide, tiles: RankedTiles) -> NDArray[np.int64]:
    """``[N, 2]`` top-left corners of a slide's tiles in level-0 pixels.

    Raises:
        SlideError: If the audit has none.
    """
    if tiles.coords is None or slide.unit != "px" or slide.patch_size is None:
        what = "has no tile positions in level-0 pixels"
        raise SlideError(slide.slide_id, what, "audit features that store coordinates")
    return tiles.coords


def ranked_slides(
    audit: StoredAudit,
    slide_ids: Sequence[str],
    columns: Sequence[Order],
    k: str,
    marks: Marks | None = None,
) -> Iterator[RankedSlide]:
    """The slides with the first ``k`` tiles of their rankings, in the order of the audit."""
    measured, wanted = audit.measured(), set(slide_ids)
    row_of = {name: row for row, name in enumerate(measured.curves.slide_ids)}
    by_id = {slide.slide_id: slide for slide in audit.slides}
    for tiles in audit.tiles(wanted):
        row = row_of[tiles.slide_id]
        target = int(measured.targets["prediction"][row])
        mask = None if marks is None else marks.get(tiles.slide_id)
        yield RankedSlide(
            slide=by_id[tiles.slide_id],
            tiles=tiles,
            columns=tuple(_column(audit, tiles, row, target, one, k) for one in columns),
            predicted=audit.manifest.classes[target],
            p=float(measured.slides.full[row, target]),
            witness=None if mask is None else mask[tiles.tiles],
        )


def _column(
    audit: StoredAudit, tiles: RankedTiles, row: int, target: int, chosen: Order, k: str
) -> RankedColumn:
    measured = audit.measured()
    count, as_asked = count_of(measured, row, chosen, k)
    name = column(*chosen)
    insert = measured.curves.get(*chosen)[row]
    delete = measured.curves.deletions(*chosen)
    full = insert.full[target]
    return RankedColumn(
        name=name,
        order=tiles.order(name)[:count],
        revealed=_at(insert, target, count),
        delta_p=full - _at(delete[row], target, count) if delete else np.full(count, np.nan),
        msk=measured_count(measured, row, chosen, "msk"),
        as_asked=as_asked,
    )


def _at(curve: Curve, target: int, count: int) -> NDArray[np.float64]:
    """Probability of the target at the counts 1 to ``count``; NaN where not measured."""
    values = np.full(count, np.nan)
    inside = (curve.ks >= 1) & (curve.ks <= count)
    values[curve.ks[inside] - 1] = followed(curve.probs, target).confidence[inside]
    return values


COLUMNS = (
    "slide_id", "ranking", "rank", "tile", "x", "y", "side", "score", "p_revealed", "delta_p",
    "witness",
)  # fmt: skip


def write_tiles(ranked: RankedSlide, path: Path) -> None:
    """Write a CSV table of the first tiles of every ranking, one row per ranking and tile.

    ``witness`` is empty where nothing is annotated.
    """
    placed, witness, rows = ranked.tiles.coords, ranked.witness, []
    for own in ranked.columns:
        for rank, at in enumerate(own.order, 1):
            x, y = ("", "") if placed is None else placed[at].tolist()
            row = (
                ranked.slide.slide_id,
                own.name,
                rank,
                ranked.tiles.tiles[at],
                x,
                y,
                ranked.slide.patch_size or "",
                repr(float(ranked.tiles.scores[own.name][at])),
                _number(own.revealed[rank - 1]),
                _number(own.delta_p[rank - 1]),
                "" if witness is None else int(witness[at]),
            )
            rows.append(dict(zip(COLUMNS, map(str, row), strict=True)))
    write_csv(path, list(COLUMNS), rows)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6f}"


# One QuPath detection per tile.

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "foci.tiles")
"""Of the tiles' version-5 UUIDs: the same tile gets the same one at every export."""


def feature_collection(
    ranked: RankedSlide,
    column: RankedColumn,
    colour: tuple[int, int, int],
    origin: tuple[int, int] = (0, 0),
) -> dict[str, Any]:
    """The first tiles of one ranking in red, green and blue (0 to 255), for QuPath 0.4 or later.

    QuPath begins to count at ``origin``, the top-left corner of the scanned part.
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
