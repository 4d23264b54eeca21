"""Hand an audit to other programs: QuPath, tables, figures for print.

:func:`export` writes the formats asked for; a bad image costs only its own slide.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foci.audits import StoredAudit
from foci.audits.truth import Truth
from foci.errors import FociError, SlideError
from foci.exports.card import write_card
from foci.exports.figures import look, write_figure
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
CARD = "card"
FORMATS = ("geojson", "csv", *FIGURES, CARD)


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
    truth: Truth | None = None,
) -> Exported:
    """Write the first tiles of slides as GeoJSON, CSV and figures, and the card of the audit.

    Args:
        audit: A finished audit.
        out: Folder.
        formats: Of :data:`FORMATS`.
        slide_ids: Slides to export.
        rankings: Names, with or without a seed; default is the first seed of every ranking.
        k: Number of tiles: ``"msk"``, ``"decisive"``, ``"all"`` or a number.
        images: Image of every slide that has one.
        slide_mpp: Micrometres per level-0 pixel of images that do not say.
        truth: Annotations, see :func:`foci.audits.truth.read_truth`.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise FociError(f"--to {unknown[0]}", "is not a format", f"known: {', '.join(FORMATS)}")
    columns = columns_to_export(audit.measured(), rankings)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    files = write_card(audit, folder) if CARD in formats else []
    skipped: dict[str, str] = {}
    of_slides = [kind for kind in formats if kind != CARD]
    if not of_slides:
        return Exported(tuple(files), skipped)
    for ranked in ranked_slides(audit, slide_ids, columns, k, truth):
        name = ranked.slide.slide_id
        for column in ranked.columns:
            if k == "decisive" and not column.as_asked:
                _LOG.info("%s: %s under %s", name, column.why_none, column.name)
            elif not column.as_asked:
                _LOG.info(
                    "%s: no %s under %s; the first %d tiles instead",
                    name, k, column.name, len(column),
                )  # fmt: skip
        try:
            files += _write_slide(ranked, folder, of_slides, (images or {}).get(name), slide_mpp)
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
        curves_only = not ranked.placed and "geojson" not in formats
        tissue = None if curves_only else look(ranked, image, slide_mpp, pictures=bool(drawn))
        for kind in drawn:
            files.append(folder / f"{stem}.{kind}")
            with whole_file(files[-1], durable=False) as temporary:
                write_figure(ranked, tissue, temporary, kind)
        if tissue is not None and "geojson" in formats:
            slides = dict.fromkeys(ranked.tiles.sources)
            for column, one in itertools.product(ranked.columns, slides or (None,)):
                found = feature_collection(ranked, column, tissue.origin, one)
                begin = stem if one is None else file_name(one)
                files.append(folder / f"{begin}.{file_name(column.name)}.geojson")
                write_whole(files[-1], to_text(found), durable=False)
    if "csv" in formats:
        files.append(folder / f"{stem}.csv")
        write_tiles(ranked, files[-1])
    return files
