"""Audit folders made by hand, without a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from foci.audits import AuditedSlide, Curve, CurveTable, RankedTiles, StoredAudit
from foci.audits.folder import (
    CURVES,
    FORMAT,
    MANIFEST,
    RANKINGS,
    SLIDES,
    SUMMARY,
    curves_to_arrow,
    part_name,
    slides_to_arrow,
)
from foci.audits.folder import scores_to_arrow as tiles_to_arrow
from foci.audits.manifest import BackboneRecord, Manifest
from foci.audits.settings import AuditSettings
from tests.makers.curves import CLASSES, Counts, slides, summarised, table, tiles

SKIPPED = AuditedSlide("torn", "P99", skipped='torn.h5: is "truncated", copy it again')


def write_folder(
    folder: Path,
    counts: Counts,
    cases: Sequence[str],
    labels: Sequence[str | None],
    *,
    name: str = "abmil",
    classes: Sequence[str] = CLASSES,
    change: dict[str, Any] | None = None,
    **how: Any,
) -> StoredAudit:
    """Curves of :func:`tests.makers.curves.table` as a finished audit."""
    folder.mkdir(parents=True)
    settings = AuditSettings(**{"rankings": tuple(counts), "n_boot": 50, **(change or {})})
    curves = table(counts, k_max=settings.k_max, **how)
    known, scores = slides(cases, labels, how.get("n_tiles")), tiles(curves)
    return finished(
        folder, curves, known, scores, settings,
        skipped=[SKIPPED], classes=classes, name=name, notes=["Synthetic curves."],
    )  # fmt: skip


def finished(
    folder: Path,
    curves: CurveTable,
    known: Sequence[AuditedSlide],
    scores: Sequence[RankedTiles],
    settings: AuditSettings,
    *,
    skipped: Sequence[AuditedSlide] = (),
    classes: Sequence[str] = CLASSES,
    name: str = "abmil",
    **more: Any,
) -> StoredAudit:
    """Curves, slides and scores as a finished audit; ``more`` stands in its manifest."""
    write_tables(folder, every(curves), [*known, *skipped], scores)
    summary = summarised(curves, known, classes, settings, scores, n_skipped=len(skipped))
    (folder / SUMMARY).write_text(summary.to_json())
    made = bare_manifest(name, settings=settings, classes=list(classes), split="test", **more)
    (folder / MANIFEST).write_text(made.model_dump_json(exclude_none=True))
    return StoredAudit.load(folder)


def bare_manifest(name: str, parameters: int = 1, **more: Any) -> Manifest:
    """What every manifest of a finished audit has, and more."""
    usual: dict[str, Any] = {
        "format": FORMAT, "status": "complete", "key": "0" * 64, "run_inputs": {}, "versions": {},
        "name": name, "settings": AuditSettings(), "sources": {}, "classes": [], "split": "",
        "backbone": BackboneRecord(
            architecture="abmil", parameters=parameters, fingerprint="f" * 64, score="native",
            notes=[],
        ),
        "started": "2026-11-16T08:00:00+00:00", "maps": {}, "overlapping_patients": {},
    }  # fmt: skip
    return Manifest(**{**usual, **more})


def write_tables(
    folder: Path,
    curves: Sequence[Curve],
    slides: Sequence[AuditedSlide],
    tiles: Sequence[RankedTiles],
) -> None:
    """The tables of an audit, in one part; what is measured is left to whoever reads them."""
    for table_name in (CURVES, RANKINGS):
        (folder / table_name).mkdir(exist_ok=True)
    pq.write_table(curves_to_arrow(curves), folder / part_name(CURVES, 0))
    pq.write_table(slides_to_arrow(slides), folder / SLIDES)
    scores = [tiles_to_arrow(slide) for slide in tiles]
    schema, path = pa.unify_schemas([t.schema for t in scores]), folder / part_name(RANKINGS, 0)
    with pq.ParquetWriter(path, schema) as file:
        for table in scores:
            file.write_table(table)


def every(curves: CurveTable) -> list[Curve]:
    """All curves of a table, in the order of the file."""
    return [
        curve
        for ranking in curves.rankings
        for seed in curves.seeds(ranking)
        for curve in (*curves.get(ranking, seed), *curves.deletions(ranking, seed))
    ]
