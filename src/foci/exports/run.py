"""Export slides of an audit in the formats asked for; a bad image costs only its own slide."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foci.audits import StoredAudit
from foci.audits.audit import Marks
from foci.errors import FociError, SlideError
from foci.exports.figures import look, rgb_of, write_figure
from foci.exports.tables import (
    RankedSlide,
    columns_to_export,
    feature_collection,
    ranked_slides,
    to_text,
    write_tiles,
)
from foci.files.atomic import sweep, whole_file, write_whole
from foci.slides.image import file_name

_LOG = logging.getLogger(__name__)

FIGURES = ("png", "pdf", "svg")
FORMATS = ("geojson", "csv", *FIGURES)


@dataclass(frozen=True)
class Exported:
    """What was written, and which slides could not be exported, with the reason."""

    files: tuple[Path, ...]
    skipped: Mapping[str, str]


def export(
    audit: StoredAudit,
    out: str | Path,
    formats: Sequence[str],
    slide_ids: Sequence[str],
    *,
    rankings: Sequence[str] = (),
    k: str = "msk",
    images: Mapping[str, Path] | None = None,
    slide_mpp: float | None = None,
    marks: Marks | None = None,
) -> Exported:
    """Write the first tiles of slides as GeoJSON, CSV and figures.

    Args:
        audit: A finished audit.
        out: Folder.
        formats: Of :data:`FORMATS`.
        slide_ids: Slides to export.
        rankings: Names, with or without a seed; default is the first seed of every ranking.
        k: Number of tiles: ``"msk"``, ``"decisive"``, ``"all"`` or a number.
        images: Image of every slide that has one.
        slide_mpp: Micrometres per level-0 pixel of images that do not say.
        marks: Annotated tiles, see :func:`foci.audits.audit.read_marks`.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise FociError(f"--to {unknown[0]}", "is not a format", f"known: {', '.join(FORMATS)}")
    columns = columns_to_export(audit.measured(), rankings)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    files: list[Path] = []
    skipped: dict[str, str] = {}
    for ranked in ranked_slides(audit, slide_ids, columns, k, marks):
        name = ranked.slide.slide_id
        for column in ranked.columns:
            if not column.as_asked:
                _LOG.info(
                    "%s: no %s under %s; the first %d tiles instead",
                    name, k, column.name, len(column),
                )  # fmt: skip
        try:
            files += _write_slide(ranked, folder, formats, (images or {}).get(name), slide_mpp)
        except SlideError as error:
            skipped[name] = str(error)
            _LOG.info("skipped %s: %s", name, error)
    return Exported(tuple(files), skipped)


def _write_slide(
    ranked: RankedSlide,
    folder: Path,
    formats: Sequence[str],
    image: Path | None,
    slide_mpp: float | None,
) -> list[Path]:
    """Write the files of one slide; nothing is written if its image cannot be read."""
    stem = file_name(ranked.slide.slide_id)
    drawn = [kind for kind in FIGURES if kind in formats]
    files: list[Path] = []
    if drawn or "geojson" in formats:
        tissue = look(ranked, image, slide_mpp, pictures=bool(drawn))
        for kind in drawn:
            files.append(folder / f"{stem}.{kind}")
            with whole_file(files[-1], durable=False) as temporary:
                write_figure(ranked, tissue, temporary, kind)
        if "geojson" in formats:
            for at, column in enumerate(ranked.columns):
                found = feature_collection(ranked, column, rgb_of(at), tissue.origin)
                files.append(folder / f"{stem}.{column.name}.geojson")
                write_whole(files[-1], to_text(found), durable=False)
    if "csv" in formats:
        files.append(folder / f"{stem}.csv")
        write_tiles(ranked, files[-1])
    return files
