"""Merge the partial results of a run into its Parquet tables, one block in memory at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foci.audits.compute.jobs import RankingJob
from foci.audits.compute.partial import SCORES, PartialResults
from foci.audits.folder import slides as slide_rows
from foci.audits.folder import tile_scores as tile_rows
from foci.audits.folder.curves import REPEATED, SCHEMA
from foci.audits.folder.names import CURVES, RANKINGS, SLIDES
from foci.audits.folder.slides import AuditedSlide
from foci.audits.folder.tile_scores import RankedTiles
from foci.errors import CohortError, FociError
from foci.files.atomic import whole_file

_AGAIN = "give the same foci audit command again, with --force"


def assemble(
    folder: Path,
    parts: PartialResults,
    n_blocks: int,
    jobs: Sequence[RankingJob],
    wanted: Sequence[str],
    others: Iterable[AuditedSlide],
) -> tuple[AuditedSlide, ...]:
    """Write ``slides.parquet``, ``curves.parquet`` and ``rankings.parquet`` from partial results.

    Args:
        folder: The audit folder.
        parts: The partial results, all written.
        n_blocks: Number of blocks.
        jobs: The ranking jobs, in order.
        wanted: IDs of the slides that the blocks must hold, in order.
        others: Slides that were skipped before any block; they come last.

    Returns:
        The slides, as written.

    Raises:
        CohortError: If no slide could be audited.
        FociError: If a file of partial results is missing, or a slide in it.
    """
    blocks = [_block(parts, number, jobs) for number in range(n_blocks)]
    _check_slides(parts, blocks, wanted)
    slides = (*(slide for block in blocks for slide in block), *others)
    # a block of which every slide was skipped would be an empty row group
    full = [n for n, block in enumerate(blocks) if any(s.skipped is None for s in block)]
    if not full:
        what = f"has no slide that can be audited ({slides[0].skipped})"
        raise CohortError("cohort", what, "run foci doctor")
    _write(folder / SLIDES, [slide_rows.to_arrow(slides)])
    _write(folder / CURVES, (_curves(parts, number, jobs) for number in full), REPEATED)
    _write(folder / RANKINGS, (_tiles(parts, number, jobs) for number in full))
    return slides


def features_digest(slides: Iterable[AuditedSlide]) -> str:
    """SHA-256 over the features of all audited slides."""
    lines = (f"{s.slide_id} {s.features_sha256}\n" for s in slides if s.skipped is None)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _block(
    parts: PartialResults, number: int, jobs: Sequence[RankingJob]
) -> tuple[AuditedSlide, ...]:
    """Slides of a block, after a check that none of its files is missing."""
    slides = parts.slides(number)
    lost = parts.missing(number, jobs)
    if slides is None or lost:
        name = "slides" if slides is None else lost[0].column
        raise FociError(parts.folder, f"has lost block {number} of {name}", _AGAIN)
    return slides


def _check_slides(
    parts: PartialResults, blocks: Sequence[Sequence[AuditedSlide]], wanted: Sequence[str]
) -> None:
    stored = [slide.slide_id for block in blocks for slide in block]
    if stored != list(wanted):
        lost = [name for name in wanted if name not in set(stored)]
        what = f"does not hold slide {lost[0]}" if lost else "holds other slides than the cohort"
        raise FociError(parts.folder, what, _AGAIN)


def _write(
    path: Path, tables: Iterable[pa.Table], repeated: list[str] | Literal[True] = True
) -> None:
    """Write one row group per table; the file gets its name once it is complete.

    Args:
        path: The file.
        tables: All with the same columns.
        repeated: Columns that get a dictionary of their values; True for all.
    """
    rows = iter(tables)
    first = next(rows)
    with (
        whole_file(path) as temporary,
        pq.ParquetWriter(temporary, first.schema, use_dictionary=repeated) as writer,
    ):
        writer.write_table(first, row_group_size=max(len(first), 1))
        for table in rows:
            writer.write_table(table, row_group_size=len(table))


def _curves(parts: PartialResults, number: int, jobs: Sequence[RankingJob]) -> pa.Table:
    tables = [parts.job(number, job, SCHEMA.names) for job in jobs]
    return pa.concat_tables(tables).cast(SCHEMA).combine_chunks()


def _tiles(parts: PartialResults, number: int, jobs: Sequence[RankingJob]) -> pa.Table:
    stored = [job for job in jobs if job.stored]
    scores = {job.column: _scores(parts.job(number, job, [SCORES.name])) for job in stored}
    places = parts.places(number)
    kept = [row for row in range(len(places)) if places["tiles"][row].is_valid]
    slides = [
        RankedTiles(
            slide_id=places["slide_id"][row].as_py(),
            tiles=_numbers(places["tiles"][row]),
            coords=_coords(places, row),
            scores={column: by_slide[place] for column, by_slide in scores.items()},
        )
        for place, row in enumerate(kept)
    ]
    return pa.concat_tables([tile_rows.to_arrow(slide) for slide in slides]).combine_chunks()


def _scores(part: pa.Table) -> list[NDArray[Any]]:
    """Scores of every slide in a file of partial results, in order."""
    return [_numbers(scores) for scores in part[SCORES.name] if scores.is_valid]


def _coords(places: pa.Table, row: int) -> NDArray[Any] | None:
    x, y = places["x"][row], places["y"][row]
    return np.column_stack([_numbers(x), _numbers(y)]) if x.is_valid else None


def _numbers(entry: pa.ListScalar) -> NDArray[Any]:
    numbers: NDArray[Any] = entry.values.to_numpy()
    return numbers
