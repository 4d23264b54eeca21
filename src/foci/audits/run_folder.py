"""The folder of a run: locked and cleared, then filled shard by shard.

A shard of slides is written as parts of the audit's tables, each under its final name. A receipt,
written last, lists its slides and the hashes of its parts: a shard without one, or that is no
longer as it was written, is computed again by the run that resumes. Files are removed by name,
without following a link.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from foci.audits.folder import (
    CURVES,
    MANIFEST,
    MEASURED,
    OPTIONAL_TABLES,
    PARTS,
    RANKINGS,
    REPEATED,
    SCORE,
    SELECTORS,
    SLIDE_SCHEMA,
    SLIDES,
    SUFFIXES,
    SUMMARY,
    TABLE_FILES,
    TABLES,
    TRUTH_TABLE,
    AuditedSlide,
    RankedTiles,
    curves_to_arrow,
    part_name,
    ranked_groups,
    readable,
    slides_from_arrow,
    slides_to_arrow,
)
from foci.audits.manifest import State, state_of
from foci.audits.measure import Shard
from foci.errors import CohortError, FociError
from foci.files.atomic import sweep, whole_file, write_whole
from foci.files.hashes import changed_files, read_sealed, write_sealed
from foci.files.lock import LOCK, alone_if_free, alone_in
from foci.files.run_log import LOG
from foci.reveal import Curve
from foci.selectors import saved
from foci.slides.find import INDEX, THUMBNAILS

AUDITED = "audited.json"
"""Names of the slides to audit, for shards that are computed under SLURM."""

_AGAIN = "give the same foci audit command again"

_SEED = f"{SELECTORS}/seed-[0-9]+"
_OWN_RECEIPTS = rf"{PARTS}/([0-9]{{5,}}\.(part|means|lock)|{re.escape(AUDITED)})"
_OWN_PARTS = "|".join(rf"{table}/part-[0-9]{{5,}}\.{end}" for table, end in SUFFIXES.items())
_OWN = "|".join(
    [
        _OWN_RECEIPTS,
        _OWN_PARTS,
        *map(re.escape, (SLIDES, SUMMARY)),
        # pages at other settings than the audit's have them in their names
        r"report(-kappa-[0-9.e-]+)?(-relative)?(-k-[0-9]+)?(-prediction|-label|-class)?\.html",
        *(f"{_SEED}/{re.escape(name)}" for name in saved.FILES),
        *(f"{TABLES}/{re.escape(name)}" for name in (*TABLE_FILES, *OPTIONAL_TABLES, TRUTH_TABLE)),
        rf"{THUMBNAILS}/([^/]+\.jpg|{re.escape(INDEX)})",
    ]
)
"""Paths of the files that an audit writes, apart from its manifest and its log."""


_FOLDERS = "|".join(SUFFIXES)


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
                done = (folder / PARTS).glob("*.part")
                if state == "new" and not any(done) and not any(fitted):
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
    _remove(folder, _OWN, f"{_FOLDERS}|{PARTS}|{SELECTORS}|{_SEED}|{TABLES}|{THUMBNAILS}")


def tidy(folder: Path) -> None:
    """Remove what killed runs, fits and reports left in a folder that is locked."""
    sweep(folder, deep=True)
    _remove(folder, f"{_SEED}/{re.escape(LOCK)}")


def remove_receipts(folder: Path) -> None:
    """Remove what only a run needs, and what killed workers left."""
    sweep(folder, deep=True)
    _remove(folder, _OWN_RECEIPTS, PARTS)


def remove_results(folder: Path) -> None:
    """Remove everything that a run has written on its slides."""
    _remove(folder, f"{_OWN_RECEIPTS}|{_OWN_PARTS}", f"{PARTS}|{_FOLDERS}")


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
    for place in (folder / name for name in (PARTS, *SUFFIXES, SELECTORS, TABLES, THUMBNAILS)):
        for path in (place, *(place.iterdir() if place.is_dir() else ())):
            if path.is_symlink() and path.is_dir():
                what = "is a link to another folder"
                raise FociError(path, what, "remove the link, or choose another --out")


# Shards


@dataclass(frozen=True)
class RevealedSlide:
    """One slide: its tiles with the scores that are stored, and the curves of every ranking job."""

    slide: AuditedSlide
    ranked: RankedTiles
    curves: Mapping[str, tuple[Curve, ...]]


@dataclass(frozen=True)
class Receipt:
    """What a finished shard holds.

    Attributes:
        slides: All slides of the shard, skipped ones among them.
        files: SHA-256 of its parts, by their path in the folder.
    """

    slides: tuple[AuditedSlide, ...]
    files: Mapping[str, str]


class Shards:
    """The shards of an audit folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def receipt_path(self, shard: int) -> Path:
        """Where the receipt is, or will be."""
        return self.folder / PARTS / f"{shard:05d}.part"

    def means_path(self, shard: int) -> Path:
        """What only the mean curves of the summary need."""
        return self.folder / PARTS / f"{shard:05d}.means"

    def complete(self, shard: int) -> bool:
        """Whether every file of a shard is written."""
        return self.receipt_path(shard).exists()

    def receipt(self, shard: int) -> Receipt:
        """Read the receipt of a shard."""
        path = self.receipt_path(shard)
        with readable(path, _AGAIN):
            table, files = self._stored_receipt(shard)
            return Receipt(slides_from_arrow(table), files)

    def _stored_receipt(self, shard: int) -> tuple[pa.Table, dict[str, str]]:
        path = self.receipt_path(shard)
        with readable(path, _AGAIN), pq.ParquetFile(pa.BufferReader(read_sealed(path))) as file:
            table = file.read(use_threads=False)  # a small file: threads take longer
            files: dict[str, str] = json.loads(table.schema.metadata[b"files"])
            return table.cast(SLIDE_SCHEMA), files

    def kept(self, shard: int, names: Sequence[str]) -> Receipt | None:
        """The receipt of an earlier run for these slides; None if the shard has to start over."""
        with contextlib.suppress(FociError):
            receipt = self.receipt(shard)
            if [slide.slide_id for slide in receipt.slides] == list(names):
                return receipt
        return None

    def intact(self, receipt: Receipt) -> bool:
        """Whether the parts are there, as they were written."""
        return not changed_files(self.folder, receipt.files)

    @contextlib.contextmanager
    def claimed(self, shard: int) -> Iterator[bool]:
        """Lock a shard that is not complete; False if it is, once whoever computes it is done."""
        place = self.folder / PARTS
        while not self.complete(shard):
            with alone_if_free(place, f"{shard:05d}.lock") as free:
                if free:
                    yield not self.complete(shard)
                    return
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        yield False

    def write(
        self,
        shard: int,
        slides: Sequence[AuditedSlide],
        revealed: Sequence[RevealedSlide],
        measured: Shard | None,
        means: Shard | None,
    ) -> None:
        """Write a shard: all its slides, and what was found on those that were not skipped."""
        files: dict[str, str] = {}
        if measured is not None and means is not None:
            by_job = zip(*(one.curves.values() for one in revealed), strict=True)
            curves = [curve for job in by_job for own in job for curve in own]
            groups = list(ranked_groups([one.ranked for one in revealed]))
            names = groups[0].column_names
            contents = {
                RANKINGS: _parquet(groups, [n for n in names if not n.startswith(SCORE)]),
                CURVES: _parquet([curves_to_arrow(curves)], REPEATED),
                MEASURED: measured.to_bytes(),
            }
            for table, content in contents.items():
                name = part_name(table, shard)
                (self.folder / table).mkdir(parents=True, exist_ok=True)
                write_whole(self.folder / name, content)
                files[name] = hashlib.sha256(content).hexdigest()
            content = means.to_bytes()
            path = self.means_path(shard)
            write_whole(path, content, durable=False)
            files[path.relative_to(self.folder).as_posix()] = hashlib.sha256(content).hexdigest()
        self._write_receipt(shard, slides, files)

    def _write_receipt(
        self, shard: int, slides: Sequence[AuditedSlide], files: Mapping[str, str]
    ) -> None:
        listed = slides_to_arrow(slides).replace_schema_metadata({"files": json.dumps(files)})
        written = io.BytesIO()
        pq.write_table(listed, written)
        write_sealed(self.receipt_path(shard), written.getvalue())

    def finish(
        self, n_shards: int, wanted: Sequence[str], others: Iterable[AuditedSlide]
    ) -> tuple[dict[str, str], list[Path]]:
        """Write ``slides.parquet``; returns the hashes of all parts, and files of mean curves.

        Args:
            n_shards: All of them must be complete.
            wanted: IDs of the slides that they must hold, in order.
            others: Slides that were skipped before; they come last.

        Raises:
            CohortError: If no slide could be audited.
            FociError: If a receipt is missing, or a slide in it.
        """
        tables: list[pa.Table] = []
        files: dict[str, str] = {}
        for shard in range(n_shards):
            table, own = self._stored_receipt(shard)
            tables.append(table)
            files |= own
        stored = [name for table in tables for name in table["slide_id"].to_pylist()]
        if stored != list(wanted):
            known = set(stored)
            lost = [name for name in wanted if name not in known]
            other = "holds other slides than the cohort"
            what = f"does not hold slide {lost[0]}" if lost else other
            raise FociError(self.folder / PARTS, what, _AGAIN)
        skipped = list(others)
        slides = pa.concat_tables([*tables, *([slides_to_arrow(skipped)] if skipped else ())])
        if not files:
            what = f"has no slide that can be audited ({slides['skipped'][0]})"
            raise CohortError("cohort", what, "run foci doctor")
        with whole_file(self.folder / SLIDES) as temporary:
            pq.write_table(slides.combine_chunks(), temporary)
        del tables, table, slides
        pa.default_memory_pool().release_unused()  # a large cohort's would stay with this process
        means = [name for name in files if name.startswith(f"{PARTS}/")]
        kept = {name: own for name, own in files.items() if not name.startswith(f"{PARTS}/")}
        return kept, [self.folder / name for name in means]


_SECONDS_BETWEEN_LOOKS = 0.5


def _parquet(groups: Sequence[pa.Table], repeated: Sequence[str]) -> bytes:
    """Tables as row groups; ``repeated`` columns get a dictionary of their values."""
    content = io.BytesIO()
    with pq.ParquetWriter(content, groups[0].schema, use_dictionary=repeated) as writer:
        for table in groups:
            writer.write_table(table.combine_chunks(), row_group_size=max(len(table), 1))
    return content.getvalue()


def features_digest(slides: Iterable[AuditedSlide]) -> str:
    """SHA-256 over the hashes of the features of all audited slides."""
    lines = (f"{s.slide_id} {s.features_xxh3}\n" for s in slides if s.skipped is None)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
