"""Store partial results of a run: one Parquet file per block of slides and ranking job.

Every file is either complete or absent, so a killed run can resume.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from foci.audits.compute.jobs import RankingJob
from foci.audits.compute.slide import RevealedSlide
from foci.audits.folder import curves as curve_rows
from foci.audits.folder import slides as slide_rows
from foci.audits.folder.damage import readable
from foci.audits.folder.names import PARTS
from foci.audits.folder.slides import AuditedSlide
from foci.files.atomic import whole_file

SCORES = pa.field("scores", pa.list_(pa.float64()))
"""Stored in the first row of a slide; null in its other rows, and for random orders."""

PLACES = [pa.field(name, pa.list_(pa.int64())) for name in ("tiles", "x", "y")]
"""Index and coordinates of candidate tiles; null if the slide was skipped or has no coordinates."""

SLIDES_PART = "slides"


class PartialResults:
    """Write and read the partial results of one run.

    The slides of a block are written before its ranking jobs, so a resumed run skips the same
    slides as the run before it.

    Args:
        folder: The audit folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / PARTS

    def missing(self, block: int, jobs: Iterable[RankingJob]) -> tuple[RankingJob, ...]:
        """Ranking jobs of a block that are still to be computed."""
        return tuple(job for job in jobs if not self._path(job.column, block).exists())

    def complete(self, block: int, jobs: Iterable[RankingJob]) -> bool:
        """Whether every file of a block is written."""
        return self._path(SLIDES_PART, block).exists() and not self.missing(block, jobs)

    def slides(self, block: int) -> tuple[AuditedSlide, ...] | None:
        """Slides of a block; None if the block has not been written."""
        path = self._path(SLIDES_PART, block)
        if not path.exists():
            return None
        with readable(path):
            return slide_rows.read_slides(path)

    def write_slides(
        self, block: int, slides: Sequence[AuditedSlide], revealed: Sequence[RevealedSlide]
    ) -> None:
        """Write which slides of a block were audited or skipped, and their tile coordinates."""
        places: dict[str, list[object]] = {field.name: [None] * len(slides) for field in PLACES}
        rows = {slide.slide_id: row for row, slide in enumerate(slides)}
        for result in revealed:
            row = rows[result.slide.slide_id]
            places["tiles"][row] = result.tiles
            if result.coords is not None:
                places["x"][row], places["y"][row] = result.coords.T
        table = slide_rows.to_arrow(slides)
        for field in PLACES:
            table = table.append_column(field, pa.array(places[field.name], field.type))
        self._write(table, self._path(SLIDES_PART, block))

    def write_job(self, block: int, job: RankingJob, revealed: Sequence[RevealedSlide]) -> None:
        """Write the curves and scores of one ranking job on a block."""
        results = [slide.jobs[job.column] for slide in revealed]
        curves = [curve for own in results for curve in own.curves]
        scores = [s for own in results for s in (own.scores, *[None] * (len(own.curves) - 1))]
        table = curve_rows.to_arrow(curves).append_column(SCORES, pa.array(scores, SCORES.type))
        self._write(table, self._path(job.column, block))

    def places(self, block: int) -> pa.Table:
        """Read the slides of a block with their tiles, as written."""
        return self._read(self._path(SLIDES_PART, block))

    def job(self, block: int, job: RankingJob, columns: list[str] | None = None) -> pa.Table:
        """Read the curves and scores of one ranking job on a block; all columns, or some."""
        return self._read(self._path(job.column, block), columns)

    def _path(self, column: str, block: int) -> Path:
        return self.folder / column / f"{block:05d}.parquet"

    @staticmethod
    def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
        with readable(path), pq.ParquetFile(path) as file:
            return file.read(columns, use_threads=False)  # a small file: threads take longer

    @staticmethod
    def _write(table: pa.Table, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            pq.write_table(table, temporary, use_dictionary=curve_rows.REPEATED)
