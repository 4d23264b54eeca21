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
from foci.audits.folder import Order, column, stored_columns
from foci.audits.measure import MeasuredSlides, followed
from foci.audits.truth import Truth
from foci.bags.tables import write_csv
from foci.errors import FociError, SlideError
from foci.files.bounds import read_text
from foci.metrics.curve import count_or_none
from foci.reports.payload import by_interest
from foci.reveal import Curve
from foci.slides.find import read_thumbnails
from foci.words import colour_of

MOST_TELLING = 6
"""Slides that are exported if none is named."""

WITHOUT_COUNT = 32
"""Tiles shown where a slide has no MSK under a ranking."""

NOT_SURE, SURVIVES, NO_SET = "model not sure", "decision survives", "no deciding tiles"
"""Why a ranking has no decisive K: the model decides nothing with confidence; removing the first
tiles, as many as were tried, changes no decision; or those that change it do not carry it alone."""


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
    try:
        text = read_text(path).removeprefix("\ufeff")
    except ValueError as error:
        raise FociError(path, f"cannot be read ({error})", "give one slide per line") from None
    lines = [line.strip() for line in text.splitlines()]
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

    ``k`` is ``"msk"``, ``"decisive"``, ``"all"`` or a number. Where a slide has no decisive K, no
    tile is shown: any other count would look like a finding.
    """
    n = int(measured.slides.n_tiles[row])
    if k == "all":
        return n, True
    if k in ("msk", "decisive"):
        count = measured_count(measured, row, chosen, k)
        instead = 0 if k == "decisive" else min(n, WITHOUT_COUNT)
        return (instead, False) if count is None else (count, True)
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


CurvePoints = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class RankedColumn:
    r"""First K tiles of one ranking.

    Attributes:
        name: Ranking, with its seed.
        ranking: Without it; it decides the colour.
        order: ``[K]`` positions in the bag.
        revealed: ``[K]`` probability of the predicted class from the tiles up to this one.
        delta_p: ``[K]`` :math:`\Delta p(r) = p(\text{full}) - p(\text{without the first } r)`.
        msk: Minimum Sufficient K; None where not reached.
        decisive: Decisive K; None where there is none.
        why_none: Why there is none, in a few words; empty where there is one.
        as_asked: False where the count asked for does not exist, and another was taken.
        keep, remove: Measured counts, and the probability of the predicted class from the first K
            tiles and without them.

    ``revealed`` and ``delta_p`` hold NaN at counts that the audit did not measure.
    """

    name: str
    ranking: str
    order: NDArray[np.int64]
    revealed: NDArray[np.float64]
    delta_p: NDArray[np.float64]
    msk: int | None
    decisive: int | None
    why_none: str
    as_asked: bool
    keep: CurvePoints
    remove: CurvePoints

    @property
    def colour(self) -> str:
        """Of its ranking, on a light ground."""
        return colour_of(self.ranking)

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
        kappa: Confidence from which the model is sure.
        witness: ``[N]`` bool, annotated tiles; None where nothing is annotated.
    """

    slide: AuditedSlide
    tiles: RankedTiles
    columns: tuple[RankedColumn, ...]
    predicted: str
    p: float
    kappa: float
    witness: NDArray[np.bool_] | None

    @property
    def placed(self) -> bool:
        """Whether the tiles have positions in level-0 pixels."""
        return _placed(self.slide, self.tiles)

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
    if tiles.coords is None or not _placed(slide, tiles):
        what = "has no tile positions in level-0 pixels"
        raise SlideError(slide.slide_id, what, "audit features that store coordinates")
    return tiles.coords


def _placed(slide: AuditedSlide, tiles: RankedTiles) -> bool:
    return tiles.coords is not None and slide.unit == "px" and slide.patch_size is not None


def ranked_slides(
    audit: StoredAudit,
    slide_ids: Sequence[str],
    columns: Sequence[Order],
    k: str,
    truth: Truth | None = None,
) -> Iterator[RankedSlide]:
    """The slides with the first ``k`` tiles of their rankings, in the order of the audit."""
    measured, wanted = audit.measured(), set(slide_ids)
    row_of = {name: row for row, name in enumerate(measured.curves.slide_ids)}
    by_id = {slide.slide_id: slide for slide in audit.slides}
    scans = {name: one.box for name, one in read_thumbnails(audit.folder).items()}
    for tiles in audit.tiles(wanted):
        row = row_of[tiles.slide_id]
        target = int(measured.targets["prediction"][row])
        slide = by_id[tiles.slide_id]
        marks = None if truth is None else truth.of(slide, tiles, scans.get(slide.slide_id))
        yield RankedSlide(
            slide=slide,
            tiles=tiles,
            columns=tuple(_column(audit, tiles, row, target, one, k) for one in columns),
            predicted=audit.manifest.classes[target],
            p=float(measured.slides.full[row, target]),
            kappa=audit.manifest.settings.kappa,
            witness=None if marks is None else marks == 1,
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
    removed = followed(delete[row].probs, target) if delete else None
    if measured.slides.full[row].max() < audit.manifest.settings.kappa:
        why_none = NOT_SURE
    else:
        why_none = SURVIVES if removed is not None and removed.kept.all() else NO_SET
    decisive = measured_count(measured, row, chosen, "decisive")
    nothing = np.empty(0, np.int64), np.empty(0)
    return RankedColumn(
        name=name,
        ranking=chosen[0],
        order=tiles.order(name)[:count],
        revealed=_at(insert, target, count),
        delta_p=full - _at(delete[row], target, count) if delete else np.full(count, np.nan),
        msk=measured_count(measured, row, chosen, "msk"),
        decisive=decisive,
        why_none="" if decisive is not None else why_none,
        as_asked=as_asked,
        keep=(insert.ks, followed(insert.probs, target).confidence),
        remove=nothing if removed is None else (delete[row].ks, removed.confidence),
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

    ``witness`` is empty where nothing is annotated. Of a patient, ``slide_id`` is the slide that
    the tile is from.
    """
    placed, witness, rows = ranked.tiles.on_slide, ranked.witness, []
    for own in ranked.columns:
        for rank, at in enumerate(own.order, 1):
            x, y = ("", "") if placed is None else placed[at].tolist()
            row = (
                ranked.tiles.source(at),
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
    origin: tuple[int, int] = (0, 0),
    source: str | None = None,
) -> dict[str, Any]:
    """The first tiles of one ranking in its colour, for QuPath 0.4 or later.

    Of a patient those on one slide, the ``source``.

    QuPath begins to count at ``origin``, the top-left corner of the scanned part.
    """
    side, tiles = ranked.side, ranked.tiles
    corners = ranked.corners if tiles.own_coords is None else tiles.own_coords
    colour = list(bytes.fromhex(column.colour.removeprefix("#")))
    features = []
    for rank, position in enumerate(column.order, 1):
        if source is not None and tiles.source(position) != source:
            continue
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
                "id": tile_uuid(tiles.source(position), column.name, int(tiles.tiles[position])),
                "geometry": {"type": "Polygon", "coordinates": [outline]},
                "properties": {
                    "objectType": "detection",
                    "name": f"{column.name} {rank}",
                    "classification": {"name": f"FOCI {column.name}", "color": colour},
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
