"""Write and read ``slides.parquet``: audited slides, and skipped ones with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        pa.field("slide_id", pa.string(), nullable=False),
        pa.field("case_id", pa.string(), nullable=False),
        pa.field("label", pa.string()),
        pa.field("n_tiles", pa.int32(), nullable=False),
        pa.field("n_total", pa.int32(), nullable=False),
        pa.field("unit", pa.string(), nullable=False),
        pa.field("patch_size", pa.int32()),
        pa.field("features_sha256", pa.string(), nullable=False),
        pa.field("skipped", pa.string()),
        pa.field("encoder", pa.string()),
        pa.field("n_zero", pa.int32()),
        pa.field("fingerprint", pa.string()),
    ]
)


@dataclass(frozen=True)
class AuditedSlide:
    """One audited or skipped slide.

    Attributes:
        slide_id: The slide.
        case_id: Its patient.
        label: Its class, or None.
        n_tiles: Candidate tiles; 0 if it could not be read.
        n_total: Tiles in the file.
        unit: Unit of the coordinates.
        patch_size: Side of a tile in that unit, or None.
        features_sha256: SHA-256 of the candidate tiles' features in float32.
        skipped: Why the slide was skipped, in one line; None if it was audited.
        encoder: Tile encoder that the feature file names, or None.
        n_zero: Candidate tiles whose features are all zero; None if it could not be read.
        fingerprint: :meth:`foci.Bag.fingerprint`; None if it could not be read.
    """

    slide_id: str
    case_id: str
    label: str | None = None
    n_tiles: int = 0
    n_total: int = 0
    unit: str = "px"
    patch_size: int | None = None
    features_sha256: str = ""
    skipped: str | None = None
    encoder: str | None = field(default=None, compare=False)
    n_zero: int | None = field(default=None, compare=False)
    fingerprint: str | None = field(default=None, compare=False)


def to_arrow(slides: Sequence[AuditedSlide]) -> pa.Table:
    """Convert slides to rows of ``slides.parquet``."""
    return pa.Table.from_pylist([asdict(slide) for slide in slides], schema=SCHEMA)


def read_slides(path: str | Path) -> tuple[AuditedSlide, ...]:
    """Read ``slides.parquet``."""
    return tuple(AuditedSlide(**row) for row in pq.read_table(path, schema=SCHEMA).to_pylist())
