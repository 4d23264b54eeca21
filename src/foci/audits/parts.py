"""The folder of a run: locked and cleared, filled with partial results, merged at the end.

A block of slides is written as a whole, or computed again by the run that resumes, as is a block
that is no longer as it was written. Blocks are merged into the tables of the audit, one block in
memory at a time. Files are removed by name, without following a link.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq

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
    TRUTH_TABLE,
    AuditedSlide,
    RankedTiles,
    curves_to_arrow,
    ranked_tiles,
    readable,
    scores_to_arrow,
    slides_from_arrow,
    slides_to_arrow,
)
from foci.audits.manifest import State, state_of
from foci.errors import CohortError, FociError
from foci.files.atomic import sweep, whole_file
from foci.files.hashes import read_sealed, write_sealed
from foci.files.lock import LOCK, alone_in
from foci.files.run_log import LOG
from foci.reveal import Curve
from foci.selectors import saved
from foci.slides.find import INDEX, THUMBNAILS

_AGAIN = "give the same foci audit command again"

_SEED = f"{SELECTORS}/seed-[0-9]+"
_OWN_PARTS = rf"{PARTS}/[^/]+/[0-9]{{5,}}\.part"
_OWN = "|".join(
    [
        _OWN_PARTS,
        *map(re.escape, (SLIDES, CURVES, RANKINGS, SUMMARY)),
        # pages at other settings than the audit's have them in their names
        r"report(-kappa-[0-9.e-]+)?(-relative)?(-k-[0-9]+)?(-prediction|-label)?\.html",
        *(f"{_SEED}/{re.escape(name)}" for name in saved.FILES),
        *(f"{TABLES}/{re.escape(name)}" for name in (*TABLE_FILES, TRUTH_TABLE)),
        rf"{THUMBNAILS}/([^/]+\.jpg|{re.escape(INDEX)})",
    ]
)
"""Paths of the files that an audit writes, apart from its manifest and its log."""


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
    _remove(folder, _OWN, f"{PARTS}(/[^/]+)?|{SELECTORS}|{_SEED}|{TABLES}|{THUMBNAILS}")


def tidy(folder: Path) -> None:
    """Remove what killed runs, fits and reports left in a folder that is locked."""
    sweep(folder, deep=True)
    _remove(folder, f"{_SEED}/{re.escape(LOCK)}")


def remove_parts(folder: Path) -> None:
    """Remove the partial results of a run."""
    _remove(folder, _OWN_PARTS, f"{PARTS}(/[^/]+)?")


def _remove(folder: Path, files: str, folders: str = "") -> None:
    """Remove files of which the path within the folder matches, then such folders if empty."""
    for root, _, names in os.walk(folder, topdown=False):  # which follows no link to a folder
        place = Path(root)
        within = place.relative_to(folder)
        for name in names:
            if re.fullmatch(files, (within / name).as_posix()):
                (place / name).unlink(missing_ok=True)
        if re.fullmatch(folders, within.as_posix()) and not any(place.iterdir()):
            place.rmdir()


def check_no_links(folder: Path) -> None:
    """Refuse a folder in which a run would write through a link into another one."""
    for place in (folder / PARTS, folder / SELECTORS, folder / TABLES, folder / THUMBNAILS):
        for path in (place, *(place.iterdir() if place.is_dir() else ())):
            if path.is_symlink() and path.is_dir():
                what = "is a link to another folder"
                raise FociError(path, what, "remove the link, or choose another --out")


# Partial results


@dataclass(frozen=True)
class RevealedSlide:
    """One slide: its tiles with the scores that are stored, and the curves of every ranking job."""

    slide: AuditedSlide
    ranked: RankedTiles
    curves: Mapping[str, tuple[Curve, ...]]


class PartialResults:
    """Blocks of slides, each as three tables that look like those of the audit, with checksums.

    The slides of a block are written first, so a resumed run skips the same slides as the run
    before it. The curves are written last: where they are, the block is complete.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / PARTS

    def path(self, table: str, block: int) -> Path:
        """File of a block: its part of ``slides.parquet``, ``rankings.parquet``, ..."""
        return self.folder / Path(table).stem / f"{block:05d}.part"

    def complete(self, block: int) -> bool:
        """Whether every file of a block is written."""
        return self.path(CURVES, block).exists()

    def slides(self, block: int) -> tuple[AuditedSlide, ...]:
        """Slides of a block."""
        table = self.read(SLIDES, block)
        with readable(self.path(SLIDES, block), _AGAIN):
            return slides_from_arrow(table)

    def kept(self, block: int, names: Sequence[str]) -> tuple[AuditedSlide, ...] | None:
        """The slides that an earlier run has written for a block; None if it has to start over."""
        with contextlib.suppress(FociError):
            slides = self.slides(block)
            if [slide.slide_id for slide in slides] == list(names):
                return slides
        return None

    def intact(self, block: int, slides: Sequence[AuditedSlide]) -> bool:
        """Whether the results for these slides are there, as they were written."""
        tables = [CURVES, *([RANKINGS] if any(s.skipped is None for s in slides) else [])]
        try:
            for table in tables:
                read_sealed(self.path(table, block))
        except (OSError, ValueError):
            return False
        return True

    def reopen(self, block: int) -> None:
        """A block is to be computed again: it is complete no longer."""
        if self.complete(block):
            self.path(CURVES, block).unlink()

    def write(
        self, block: int, slides: Sequence[AuditedSlide], revealed: Sequence[RevealedSlide]
    ) -> None:
        """Write a block: all its slides, and what was computed on those that were not skipped."""
        self._write(slides_to_arrow(slides), self.path(SLIDES, block))
        if revealed:
            tables = [scores_to_arrow(one.ranked) for one in revealed]
            self._write(pa.concat_tables(tables), self.path(RANKINGS, block))
        by_job = zip(*(one.curves.values() for one in revealed), strict=True)
        curves = [curve for job in by_job for own in job for curve in own]
        self._write(curves_to_arrow(curves), self.path(CURVES, block))

    def read(self, table: str, block: int) -> pa.Table:
        """Read one table of a block."""
        path = self.path(table, block)
        with readable(path, _AGAIN), pq.ParquetFile(pa.BufferReader(read_sealed(path))) as file:
            return file.read(use_threads=False)  # a small file: threads take longer

    @staticmethod
    def _write(table: pa.Table, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        pq.write_table(table, content, use_dictionary=REPEATED)
        write_sealed(path, content.getvalue())


class Assembly:
    """Merges blocks of partial results into Parquet tables, in order, as they are written.

    A context: ``curves.parquet`` and ``rankings.parquet`` get their names where it ends without an
    error, after :meth:`finish`. ``seen`` is called with every slide's tiles and scores, in order.
    """

    def __init__(
        self,
        folder: Path,
        n_blocks: int,
        seen: Callable[[RankedTiles], None] = lambda slide: None,
    ) -> None:
        self.folder, self.n_blocks, self.seen = folder, n_blocks, seen
        self.parts = PartialResults(folder)
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
        ready = number < self.n_blocks and self.parts.complete(number)
        if ready:
            self._merge(number)
        return ready

    def finish(self, wanted: Sequence[str], others: Iterable[AuditedSlide]) -> None:
        """Merge the blocks that are left, and write ``slides.parquet``.

        Args:
            wanted: IDs of the slides that the blocks must hold, in order.
            others: Slides that were skipped before any block; they come last.

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

    def _merge(self, number: int) -> None:
        slides = self.parts.slides(number)
        # a block of which every slide was skipped would be an empty row group
        if any(slide.skipped is None for slide in slides):
            ranked, curves = (self.parts.read(table, number) for table in (RANKINGS, CURVES))
            self._write(CURVES, curves.cast(CURVE_SCHEMA), REPEATED)
            self._write(RANKINGS, ranked, repeated=True)
            for slide in ranked_tiles(ranked):
                self.seen(slide)
        self.blocks.append(slides)

    def _write(self, name: str, table: pa.Table, repeated: list[str] | Literal[True]) -> None:
        """Write a row group; ``repeated`` columns, or all, get a dictionary of their values."""
        if name not in self.writers:
            temporary = self.open.enter_context(whole_file(self.folder / name))
            self.writers[name] = self.open.enter_context(
                pq.ParquetWriter(temporary, table.schema, use_dictionary=repeated)
            )
        self.writers[name].write_table(table.combine_chunks(), row_group_size=max(len(table), 1))


def features_digest(slides: Iterable[AuditedSlide]) -> str:
    """SHA-256 over the features of all audited slides."""
    lines = (f"{s.slide_id} {s.features_sha256}\n" for s in slides if s.skipped is None)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
