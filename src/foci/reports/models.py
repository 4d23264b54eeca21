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
    CountQuartiles,
    Counts,
    CurveBand,
    Interval,
    Mean,
    MeanDrops,
    Numbers,
    Record,
    SelectedOnly,
    Survival,
)
from foci.audits.settings import View
from foci.metrics.answers import Belief, BetterOrder

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


class DrawnDecided(Record):
    """Quartiles over decided slides, as the dot plots mark them."""

    n_slides: int
    msk: CountQuartiles | None
    decisive: CountQuartiles | None


class DrawnAnswers(Record):
    """Which rankings the answers compare; a dot plot shows their slides.

    Attributes:
        map: The map that is judged.
        ranking: The ranking whose decisive K answers how many tiles.
        count, count_low, count_high: Its median and quartiles over the slides that have one.
        candidate: The ranking that is tried against the map; None without one.
    """

    map: str
    ranking: str
    count: float | None
    count_low: float | None
    count_high: float | None
    candidate: str | None


class DrawnNumbers(Record):
    """Numbers of a ranking that figures draw; the page's HTML shows the others."""

    restricted: Mean
    reach: Mean
    median_k: int | None
    mean_curve: CurveBand
    km: Survival
    drops: MeanDrops
    selected_only: SelectedOnly | None
    decided: DrawnDecided | None


class RankingColumns(Record):
    """A ranking, and the columns (one per seed) under which its orders are stored."""

    name: str
    columns: list[str]


class SlideMeasures(Record):
    """Metrics of one ranking per slide, averaged over seeds; None for slides not in the view.

    Attributes:
        k: Tiles needed (MSK); K_max for a seed that never reaches.
        reach: Share of the seeds that reach.
        falls_back: Share of the seeds that reach and later fall below kappa again.
        decisive: Decisive K over the seeds that have one; None where none has.
        found: Share of the seeds that have a decisive K; None where it was not measured.
    """

    k: Numbers
    reach: Numbers
    falls_back: Numbers
    decisive: Numbers
    found: Numbers
    aukc: Numbers
    faithfulness: Numbers


class SlideColumns(Record):
    """Columns of the slide table.

    Attributes:
        label: Class index; None if unknown.
        predicted: Class index.
        p: Probability of the predicted class.
        n: Number of candidate tiles.
        k_star: Proven minimum of deciding tiles, or a lower bound; None without either.
        proof: What is proven: :attr:`foci.metrics.MinimalSet.kind`.
    """

    id: list[str]
    case: list[str]
    label: list[int | None]
    predicted: Counts
    p: list[float]
    n: Counts
    k_star: list[int | None]
    proof: list[str | None]
    measures: dict[View, dict[str, SlideMeasures]]


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
        tissue: Picture of the slide behind the tiles; None where there is none, or no room.
        tiles: Index of every candidate tile in its file; None if all tiles are candidates.
        orders: First tiles of every column.
        views: Prediction, and label if that is another class.
    """

    ks: Counts | None
    unit: str
    placement: TilePlacement | None
    tissue: TissuePicture | None = None
    tiles: Packed | None
    orders: dict[str, Packed]
    views: dict[View, ViewDetail]


class AuditPayload(Record):
    """Everything that the figures, the table and the slides of a report need."""

    kind: Literal["audit"] = "audit"
    classes: list[str]
    kappa: float
    k_max: int
    first_view: View
    rankings: list[RankingColumns]
    headline: str
    answers: DrawnAnswers | None
    level: float
    n_cases: int
    full_auc: float | None
    numbers: dict[View, dict[str, DrawnNumbers]]
    ks: Counts
    slides: SlideColumns
    details: dict[str, SlideDetail]


class ComparedAudit(Record):
    """One audit on a comparison page, in the prediction view.

    Attributes:
        n_decided: Slides that the model has decided.
        map: Can I believe the map?
        tiles: How many tiles does the decision hang on?
        order: Is there a better order?
        restricted: Tiles needed, mean over all slides, by ranking.
        reach: Share of slides on which a ranking gets to kappa, by ranking.
        shi_native: Tiles saved by the selector against the map.
        shi_random: The same against random orders.
        efficiency: Proven minimum over the deciding tiles of a ranking, by ranking that has one.
    """

    name: str
    architecture: str
    n_slides: int
    n_cases: int
    n_decided: int
    kappa: float
    k_max: int
    auc: float | None
    map: Belief
    tiles: str
    order: BetterOrder
    restricted: dict[str, Mean]
    reach: dict[str, Mean]
    shi_native: Interval | None
    shi_random: Interval | None
    efficiency: dict[str, Interval]


class ComparisonPayload(Record):
    """Everything that the figures of a comparison page need."""

    kind: Literal["comparison"] = "comparison"
    rankings: list[str]
    k_max: int
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
