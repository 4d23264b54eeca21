"""The folder of a run: locked and cleared, filled with partial results, merged at the end.

There is one Parquet file per block of slides and ranking job, either complete or absent, so a
killed run can resume. They are merged into the tables of the audit, one block in memory at a time.
Files are removed by name, without following a link.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foci.audits.folder import (
    CURVE_SCHEMA,
    CURVES,
    MANIFEST,
    PARTS,
    RANKINGS,
    REPEATED,
    SELECTORS,
    SLIDES,
    SUMMARY,
    TABLE_FILES,
    TABLES,
    AuditedSlide,
    RankedTiles,
    curves_to_arrow,
    read_slides,
    readable,
    scores_to_arrow,
    slides_to_arrow,
)
from foci.audits.jobs import RankingJob
from foci.audits.manifest import State, state_of
from foci.errors import CohortError, FociError
from foci.files.atomic import sweep, whole_file
from foci.files.lock import LOCK, alone_in
from foci.files.run_log import LOG
from foci.reveal import Curve
from foci.selectors import saved
from foci.slides.find import INDEX, THUMBNAILS

SCORES = pa.field("scores", pa.list_(pa.float64()))
"""Stored in the first row of a slide; null in its other rows, and for random orders."""

PLACES = [pa.field(name, pa.list_(pa.int64())) for name in ("tiles", "x", "y")]
"""Index and coordinates of candidate tiles; null if the slide was skipped or has no coordinates."""

SLIDES_PART = "slides"
_AGAIN = "give the same foci audit command again, with --force"

_REPORT = re.compile(
    r"report(-kappa-[0-9.e-]+)?(-relative)?(-k-[0-9]+)?(-prediction|-label)?\.html"
)
"""Report pages in the folder, including those at other settings than the audit's."""

_SEED = re.compile(r"seed-[0-9]+")
_PART = re.compile(r"[0-9]{5,}\.parquet")


@contextlib.contextmanager
def locked_run_folder(
    folder: Path, inputs: Mapping[str, Any], versions: Mapping[str, str], *, force: bool
) -> Iterator[State]:
    """Create, lock and clean up a folder for one run; yields its state, see :func:`state_of`.

    A run that is refused before its first results leaves nothing behind: its manifest would make
    the next run, with the mistake corrected, demand ``--force``. Slides that were computed and
    selectors that were fitted stay, with the manifest that they need.
    """
    existed = folder.exists()
    state_of(folder, inputs, versions, force=force)  # raises before anything is changed
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with alone_in(folder):
            state = state_of(folder, inputs, versions, force=force)
            check_no_links(folder)
            if state == "new":
                clear(folder)
            tidy(folder)
            try:
                yield state
            except FociError:
                fitted = (folder / SELECTORS).glob(f"*/{saved.METADATA}")
                if state == "new" and not (folder / PARTS).exists() and not any(fitted):
                    clear(folder)
                    for name in (MANIFEST, LOG):
                        (folder / name).unlink(missing_ok=True)
                raise
    except FociError:
        if not existed:
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
        raise


def clear(folder: Path) -> None:
    """Remove the files that an audit writes, and no others.

    The manifest stays until it is replaced: without it, FOCI would not recognise its own folder.
    """
    sweep(folder, deep=True)
    remove_parts(folder)
    for name in (SLIDES, CURVES, RANKINGS, SUMMARY):
        (folder / name).unlink(missing_ok=True)
    for path in _entries(folder):
        if _REPORT.fullmatch(path.name):
            path.unlink(missing_ok=True)
    for place in _entries(folder / SELECTORS):
        if _SEED.fullmatch(place.name):
            _remove(place, saved.FILES)
    _remove(folder / SELECTORS, ())
    _remove(folder / TABLES, TABLE_FILES)
    pictures = folder / THUMBNAILS
    shown = [path.name for path in _entries(pictures) if path.suffix == ".jpg"]
    _remove(pictures, [*shown, INDEX])


def tidy(folder: Path) -> None:
    """Remove what killed runs, fits and reports left in a folder that is locked."""
    sweep(folder, deep=True)
    for place in _entries(folder / SELECTORS):
        if _SEED.fullmatch(place.name) and _own(place):
            (place / LOCK).unlink(missing_ok=True)


def remove_parts(folder: Path) -> None:
    """Remove the partial results of a run."""
    for place in _entries(folder / PARTS):
        _remove(place, [path.name for path in _entries(place) if _PART.fullmatch(path.name)])
    _remove(folder / PARTS, ())


def check_no_links(folder: Path) -> None:
    """Refuse a folder in which a run would write through a link into another one."""
    for place in (folder / PARTS, folder / SELECTORS, folder / TABLES, folder / THUMBNAILS):
        for path in (place, *_entries(place)):
            if path.is_symlink() and path.is_dir():
                what = "is a link to another folder"
                raise FociError(path, what, "remove the link, or choose another --out")


def _own(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink()


def _entries(folder: Path) -> list[Path]:
    """What is in a folder; nothing if it is a link, or none."""
    return sorted(folder.iterdir()) if _own(folder) else []


def _remove(folder: Path, names: Sequence[str]) -> None:
    """Remove these files of a folder, and the folder if nothing else is in it."""
    if not _own(folder):
        return
    for name in names:
        path = folder / name
        if path.is_symlink() or path.is_file():
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


# Partial results


@dataclass(frozen=True)
class RevealedSlide:
    """Tiles of one slide, with its curves and scores under every ranking.

    Attributes:
        slide: The slide.
        tiles: ``[N]`` index of every candidate tile in its file.
        coords: ``[N, 2]`` top-left corners, or None.
        curves: Insertion and deletion curve of every seed, by column.
        scores: ``[N]`` tile scores by column; None if they are not stored.
    """

    slide: AuditedSlide
    tiles: NDArray[np.int64]
    coords: NDArray[np.int64] | None
    curves: Mapping[str, tuple[Curve, ...]]
    scores: Mapping[str, NDArray[np.float64] | None]


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
            return read_slides(path)

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
        table = slides_to_arrow(slides)
        for field in PLACES:
            table = table.append_column(field, pa.array(places[field.name], field.type))
        self._write(table, self._path(SLIDES_PART, block))

    def write_job(self, block: int, job: RankingJob, revealed: Sequence[RevealedSlide]) -> None:
        """Write the curves and scores of one ranking job on a block."""
        curves, scores = list[Curve](), list[object]()
        for slide in revealed:
            own = slide.curves[job.column]
            curves += own
            scores += [slide.scores[job.column], *[None] * (len(own) - 1)]
        table = curves_to_arrow(curves).append_column(SCORES, pa.array(scores, SCORES.type))
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
            pq.write_table(table, temporary, use_dictionary=REPEATED)


class Assembly:
    """Merges blocks of partial results into Parquet tables, in order, as they are written.

    A context: ``curves.parquet`` and ``rankings.parquet`` get their names where it ends without an
    error, after :meth:`finish`.

    Args:
        folder: The audit folder.
        parts: The partial results.
        n_blocks: Number of blocks.
        jobs: The ranking jobs, in order.
        seen: Called with the tiles and scores of every slide, in order.
    """

    def __init__(
        self,
        folder: Path,
        parts: PartialResults,
        n_blocks: int,
        jobs: Sequence[RankingJob],
        seen: Callable[[RankedTiles], None] = lambda slide: None,
    ) -> None:
        self.folder, self.parts, self.n_blocks, self.jobs = folder, parts, n_blocks, jobs
        self.seen = seen
        self.blocks: list[tuple[AuditedSlide, ...]] = []
        self.open = ExitStack()
        self.writers: dict[str, pq.ParquetWriter] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.open.__exit__(*raised)

    def merge_next(self) -> bool:
        """Merge the next block if it is written; False if not, or if there is none."""
        number = len(self.blocks)
        ready = number < self.n_blocks and self.parts.complete(number, self.jobs)
        if ready:
            self._merge(number)
        return ready

    def finish(
        self, wanted: Sequence[str], others: Iterable[AuditedSlide]
    ) -> tuple[AuditedSlide, ...]:
        """Merge the blocks that are left, and write ``slides.parquet``.

        Args:
            wanted: IDs of the slides that the blocks must hold, in order.
            others: Slides that were skipped before any block; they come last.

        Returns:
            The slides, as written.

        Raises:
            CohortError: If no slide could be audited.
            FociError: If a file of partial results is missing, or a slide in it.
        """
        for number in range(len(self.blocks), self.n_blocks):
            self._merge(number)
        audited = [slide for block in self.blocks for slide in block]
        stored = [slide.slide_id for slide in audited]
        if stored != list(wanted):
            lost = [name for name in wanted if name not in set(stored)]
            other = "holds other slides than the cohort"
            what = f"does not hold slide {lost[0]}" if lost else other
            raise FociError(self.parts.folder, what, _AGAIN)
        slides = (*audited, *others)
        if not self.writers:
            what = f"has no slide that can be audited ({slides[0].skipped})"
            raise CohortError("cohort", what, "run foci doctor")
        with whole_file(self.folder / SLIDES) as temporary:
            pq.write_table(slides_to_arrow(slides), temporary)
        return slides

    def _merge(self, number: int) -> None:
        slides, lost = self.parts.slides(number), self.parts.missing(number, self.jobs)
        if slides is None or lost:
            name = "slides" if slides is None else lost[0].column
            raise FociError(self.parts.folder, f"has lost block {number} of {name}", _AGAIN)
        # a block of which every slide was skipped would be an empty row group
        if any(slide.skipped is None for slide in slides):
            tables = [self.parts.job(number, job, CURVE_SCHEMA.names) for job in self.jobs]
            curves = pa.concat_tables(tables).cast(CURVE_SCHEMA)
            self._write(CURVES, curves.combine_chunks(), REPEATED)
            ranked = _tiles(self.parts, number, self.jobs)
            rows = pa.concat_tables([scores_to_arrow(slide) for slide in ranked])
            self._write(RANKINGS, rows.combine_chunks(), repeated=True)
            for slide in ranked:
                self.seen(slide)
        self.blocks.append(slides)

    def _write(self, name: str, table: pa.Table, repeated: list[str] | Literal[True]) -> None:
        """Write a row group; ``repeated`` columns, or all, get a dictionary of their values."""
        if name not in self.writers:
            temporary = self.open.enter_context(whole_file(self.folder / name))
            self.writers[name] = self.open.enter_context(
                pq.ParquetWriter(temporary, table.schema, use_dictionary=repeated)
            )
        self.writers[name].write_table(table, row_group_size=max(len(table), 1))


def features_digest(slides: Iterable[AuditedSlide]) -> str:
    """SHA-256 over the features of all audited slides."""
    lines = (f"{s.slide_id} {s.features_sha256}\n" for s in slides if s.skipped is None)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _tiles(parts: PartialResults, number: int, jobs: Sequence[RankingJob]) -> list[RankedTiles]:
    stored = [job for job in jobs if job.stored]
    scores = {job.column: _scores(parts.job(number, job, [SCORES.name])) for job in stored}
    places = parts.places(number)
    kept = [row for row in range(len(places)) if places["tiles"][row].is_valid]
    return [
        RankedTiles(
            slide_id=places["slide_id"][row].as_py(),
            tiles=_numbers(places["tiles"][row]),
            coords=_coords(places, row),
            scores={column: by_slide[place] for column, by_slide in scores.items()},
        )
        for place, row in enumerate(kept)
    ]


def _scores(part: pa.Table) -> list[NDArray[Any]]:
    """Scores of every slide in a file of partial results, in order."""
    return [_numbers(scores) for scores in part[SCORES.name] if scores.is_valid]


def _coords(places: pa.Table, row: int) -> NDArray[Any] | None:
    x, y = places["x"][row], places["y"][row]
    return np.column_stack([_numbers(x), _numbers(y)]) if x.is_valid else None


def _numbers(entry: pa.ListScalar) -> NDArray[Any]:
    numbers: NDArray[Any] = entry.values.to_numpy()
    return numbers
