"""Schema of the data that pages embed, and the packing of its numbers as base64 text.

The page's TypeScript types are generated from it: ``python -m foci.reports.models schema.json``.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, TypeAdapter

from foci.audits.records import (
    Carried,
    Counts,
    CurveBand,
    MeanDrops,
    Numbers,
    Record,
)
from foci.audits.settings import View

Packed = tuple[int, int, str]
"""``(bits, length, base64)``: the bits of each number, least significant first, end to end."""

FINE, COARSE, EXACT_P = 12, 8, 24
"""Bits of a probability that is shown as a number, of one that is only drawn, and of one that is
as good as stored."""


def pack(values: ArrayLike, bits: int | None = None) -> Packed:
    """Pack non-negative integers into base64 text.

    Args:
        values: ``[n]`` integers.
        bits: Bits per number; None for as many as the largest number needs.

    >>> pack([1, 2, 3])
    (2, 3, 'OQ==')
    """
    numbers = np.asarray(values, dtype=np.uint32).ravel()
    width = int(numbers.max(initial=0)).bit_length() or 1 if bits is None else bits
    planes = (numbers[:, None] >> np.arange(width, dtype=np.uint32)) & 1
    data = np.packbits(planes.astype(np.uint8), bitorder="little")
    return width, len(numbers), base64.b64encode(data.tobytes()).decode("ascii")


def unpack(packed: Packed) -> NDArray[np.int64]:
    """Unpack integers: the inverse of :func:`pack`.

    >>> unpack(pack([5, 0, 1023])).tolist()
    [5, 0, 1023]
    """
    bits, length, text = packed
    data = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    planes = np.unpackbits(data, count=bits * length, bitorder="little").reshape(length, bits)
    numbers: NDArray[np.int64] = planes.astype(np.int64) @ (1 << np.arange(bits, dtype=np.int64))
    return numbers


def pack_probabilities(values: ArrayLike, bits: int = FINE) -> Packed:
    r"""Round probabilities to steps of :math:`1 / (2^{bits} - 1)` and pack them.

    >>> unpack(pack_probabilities([0.0, 0.5, 1.0], bits=8)).tolist()
    [0, 128, 255]
    """
    top = (1 << bits) - 1
    return pack(np.rint(np.clip(np.asarray(values, dtype=np.float64), 0, 1) * top), bits)


class DrawnNumbers(Record):
    """Numbers of a ranking that figures draw; the page's HTML shows the others."""

    median_k: int | None
    mean_curve: CurveBand
    drops: MeanDrops


class RankingColumns(Record):
    """A ranking, and the columns (one per seed) under which its orders are stored."""

    name: str
    columns: list[str]


class SlideMeasures(Record):
    """Metrics of one ranking per slide in the prediction view, averaged over seeds.

    Attributes:
        k: Tiles needed (MSK); K_max for a seed that never reaches.
        reach: Share of the seeds that reach.
        decisive: Decisive K over the seeds that have one; None where none has.
        found: Share of the seeds that have a decisive K; None where it was not measured.
    """

    k: Numbers
    reach: Numbers
    decisive: Numbers
    found: Numbers


class SlideColumns(Record):
    """Columns of the slide table.

    Attributes:
        label: Class index; None if unknown.
        predicted: Class index.
        p: Probability of the predicted class.
        n: Number of candidate tiles.
        k_star: Proven minimum of deciding tiles, or a lower bound; None without either.
        proof: What is proven: :attr:`foci.metrics.MinimalSet.kind`.
        measures: By ranking; none in a report.
    """

    id: list[str]
    case: list[str]
    label: list[int | None]
    predicted: Counts
    p: list[float]
    n: Counts
    k_star: list[int | None]
    proof: list[str | None]
    measures: dict[str, SlideMeasures]


class TilePlacement(Record):
    """Tile corners as ``origin + step * x``, and the side of a tile in the same unit."""

    x: Packed
    y: Packed
    origin: tuple[int, int]
    step: int
    side: int
    exact: bool


class TissuePicture(Record):
    """A small picture of the slide: JPEG in base64, and what it covers as x, y, width, height."""

    jpeg: str
    box: tuple[int, int, int, int]


class RemovedCurve(Record):
    """Probability of the prediction without the first K tiles of an order.

    Attributes:
        ks: Counts; None where they are 1, 2, 3, ...
        p: Probability at each of them.
        flip: First count without which the model decides otherwise; None where none was tried.
    """

    ks: Packed | None
    p: Packed
    flip: int | None


class RandomBand(Record):
    """Smallest, mean and largest probability over the random orders, at every count."""

    low: Packed
    mean: Packed
    high: Packed


class ViewDetail(Record):
    """Reveal curves of one slide in one view.

    Attributes:
        full: Probability of the target with all tiles.
        curves: Probability of the target by column.
        msk: First count that suffices, by column; None where none does.
        stable: Count from which every further one suffices.
        falls_back: First count after ``msk`` that no longer suffices; None where all do.
    """

    full: float
    curves: dict[str, Packed]
    random: RandomBand | None
    msk: dict[str, int | None]
    stable: dict[str, int | None]
    falls_back: dict[str, int | None]


class SlideDetail(Record):
    """Tile positions, reveal orders and curves of one slide.

    Attributes:
        ks: Reveal counts; None if they are those of the page.
        placement: Tile positions; None without coordinates.
        tiles: Index of every candidate tile in its file; None if all tiles are candidates.
        orders: First tiles of every column.
        views: Prediction, and label if that is another class.
        removed: The slide without the first tiles of the map, and of the best order.
    """

    ks: Counts | None
    unit: str
    placement: TilePlacement | None
    tiles: Packed | None
    orders: dict[str, Packed]
    views: dict[View, ViewDetail]
    removed: dict[str, RemovedCurve] = Field(default_factory=dict)


class SlideMap(Record):
    """The map of a slide as a small picture, row by row.

    Attributes:
        width: Pixels of a row.
        levels: From 1 to 15, the most important tiles the largest; 0 where no tile lies; and 16
            more where a tile carries the decision.
        box: What the picture covers as x, y, width, height; None where tiles have no positions and
            are drawn one after the other.
        tissue: Picture of the slide behind it; None where there is none, or it would not fit.
    """

    width: int
    levels: Packed
    box: tuple[int, int, int, int] | None
    tissue: TissuePicture | None = None


Fate = Literal["carried", "survives", "not enough", "not sure", "not measured"]
"""What becomes of the decision on a slide under the map's order: its first tiles carry it; it
survives without them; they are needed but not enough; the model is not sure; none was removed."""


class Gallery(Record):
    """Every slide with its map, and whether the map's first tiles carry the decision there.

    Attributes:
        order: Slides, those first on which the map fails.
        first: Up to four of the sure slides, from best to worst.
        fate: By slide.
        counts: Tiles that carry the decision by slide, under the map and under the best order.
        removed: By slide, the largest number of the map's tiles that was removed.
        maps: By slide; None where no order is stored.
    """

    order: Counts
    first: Counts
    fate: list[Fate]
    counts: dict[str, list[int | None]]
    removed: Counts
    maps: list[SlideMap | None]


class AuditPayload(Record):
    """Everything that the figures, the table and the slides of a report need."""

    kind: Literal["audit"] = "audit"
    classes: list[str]
    kappa: float
    k_max: int
    first_view: View
    rankings: list[RankingColumns]
    headline: str
    map: str
    map_called: str
    carried: Carried | None
    gallery: Gallery | None
    level: float
    n_cases: int
    numbers: dict[View, dict[str, DrawnNumbers]]
    ks: Counts
    slides: SlideColumns
    details: dict[str, SlideDetail]


class ComparedAudit(Record):
    """One audit on a comparison page."""

    name: str
    map_called: str
    carried: Carried | None


class ComparisonPayload(Record):
    """Everything that the figures of a comparison page need."""

    kind: Literal["comparison"] = "comparison"
    audits: list[ComparedAudit]


class StudyPayload(Record):
    """The page of a study: its tables and figures are part of the page, nothing is drawn there."""

    kind: Literal["study"] = "study"
    name: str


Payload = Annotated[AuditPayload | ComparisonPayload | StudyPayload, Field(discriminator="kind")]


def page_schema() -> str:
    """JSON Schema of a page's data."""
    adapter: TypeAdapter[Payload] = TypeAdapter(Payload)
    return schema_text("Payload", adapter)


def schema_text(title: str, adapter: TypeAdapter[Any]) -> str:
    """JSON Schema as text; equal models give equal bytes."""
    schema = {"title": title, **adapter.json_schema(mode="serialization")}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write_schema(path: str | Path, text: str | None = None) -> bool:
    """Write a schema, that of a page by default, if the file differs; return whether it did."""
    path, text = Path(path), page_schema() if text is None else text
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8")
    return True


if __name__ == "__main__":
    write_schema(sys.argv[1])
