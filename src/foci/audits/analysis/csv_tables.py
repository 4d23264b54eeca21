"""The numbers of an audit as CSV, for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from foci.atomic import write_whole
from foci.audits.analysis.per_slide import measure
from foci.audits.analysis.summary import as_plain
from foci.audits.analysis.views import slides_by_view
from foci.audits.folder.curves import CurveTable, within
from foci.audits.folder.slides import AuditedSlide
from foci.audits.settings import AnalysisSettings
from foci.metrics.inputs import defined_mean

Row = dict[str, Any]

INTERVALS = ("msk_cond", "restricted", "reach", "aukc", "faithfulness", "shi_native", "shi_random")
SINGLE = ("reach_correct", "reach_wrong", "stable_restricted", "fallback", "specific")
PAIRED = ("base", "foci", "n_both", "n_base_only", "n_foci_only", "n_neither")


def write_tables(
    folder: str | Path,
    summary: Mapping[str, Any],
    curves: CurveTable,
    slides: Sequence[AuditedSlide],
    skipped: Sequence[AuditedSlide],
    settings: AnalysisSettings,
) -> list[Path]:
    """Write the tables into a folder; the same numbers give the same bytes.

    Args:
        folder: Where the tables go; made if it is not there.
        summary: Of :func:`foci.audits.analysis.summary.summarise`.
        curves: The stored curves.
        slides: The slides that have curves.
        skipped: The slides that were left out.
        settings: Threshold and budget.

    Returns:
        ``rankings.csv``, ``slides.csv``, ``deletion.csv``, ``agreement.csv``, ``skipped.csv``.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    reasons = [{"slide_id": slide.slide_id, "reason": slide.skipped} for slide in skipped]
    tables: dict[str, tuple[Iterable[Row], Sequence[str]]] = {
        "rankings.csv": (ranking_rows(summary), ()),
        "slides.csv": (slide_rows(summary["classes"], curves, slides, settings), ()),
        "deletion.csv": (deletion_rows(summary), ("view", "ranking", "k", "mean_drop", "n_slides")),
        "agreement.csv": (
            summary["agreement"],
            ("first", "second", "spearman", "jaccard8", "jaccard32"),
        ),
        "skipped.csv": (reasons, ("slide_id", "reason")),
    }
    for name, (rows, header) in tables.items():
        write_whole(place / name, as_csv(rows, header))
    return [place / name for name in tables]


def as_csv(rows: Iterable[Row], header: Sequence[str] = ()) -> str:
    """Comma-separated text; empty where a value is None, floats with all their digits.

    Args:
        rows: One dictionary per line.
        header: The columns; default is those of the first row.

    >>> print(as_csv([{"slide": 'a "b", c', "msk": 2.0}, {"slide": "d", "msk": None}]), end="")
    slide,msk
    "a ""b"", c",2.0
    d,
    """
    lines = list(rows)
    columns = list(header or (lines[0] if lines else ()))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def ranking_rows(summary: Mapping[str, Any]) -> Iterator[Row]:
    """The headline numbers: one row per view and ranking, the first view first."""
    for view in sorted(summary["views"], key=lambda name: name != summary["first_view"]):
        for ranking in summary["rankings"]:
            yield {"view": view, "ranking": ranking, **_headline(summary["views"][view][ranking])}


def deletion_rows(summary: Mapping[str, Any]) -> Iterator[Row]:
    """The mean deletion drops, one row per view, ranking and count."""
    for view in sorted(summary["views"], key=lambda name: name != summary["first_view"]):
        for ranking in summary["rankings"]:
            drops = summary["views"][view][ranking]["drops"]
            for k, mean, n in zip(drops["ks"], drops["mean"], drops["n_slides"], strict=True):
                yield {"view": view, "ranking": ranking, "k": k, "mean_drop": mean, "n_slides": n}


def slide_rows(
    classes: Sequence[str],
    curves: CurveTable,
    slides: Sequence[AuditedSlide],
    settings: AnalysisSettings,
) -> Iterator[Row]:
    """One row per slide, in the prediction view: means over the seeds of every ranking."""
    everyone = slides_by_view(curves, slides, classes)["prediction"]
    revealed = within(curves, settings.k_max)
    columns: dict[str, list[float | None]] = {}
    for name in curves.rankings:
        found = measure(revealed, name, everyone, settings)
        for key, values in (
            ("msk", found.restricted),
            ("reach", found.reached),
            ("aukc", found.aukc),
            ("faithfulness", found.faithfulness),
        ):
            columns[f"{key}:{name}"] = as_plain(defined_mean(values, axis=0))
    known = {slide.slide_id: slide for slide in slides}
    for row, name in enumerate(curves.slide_ids):
        predicted = int(everyone.targets[row])
        yield {
            "slide_id": name,
            "case_id": known[name].case_id,
            "label": known[name].label,
            "predicted": classes[predicted],
            "p_predicted": float(everyone.full[row, predicted]),
            "n_tiles": int(everyone.n_tiles[row]),
            **{column: values[row] for column, values in columns.items()},
        }


def _headline(numbers: Mapping[str, Any]) -> Row:
    row: Row = {}
    for name in INTERVALS:
        found = numbers[name] or {}
        row[name] = found.get("estimate")
        row[f"{name}_low"], row[f"{name}_high"] = found.get("low"), found.get("high")
    row |= {name: numbers[name] for name in SINGLE}
    kept = numbers["selected_only"] or {}
    row["selected_only_auc"] = kept.get("auc")
    row["adaptive_auc"] = kept.get("adaptive_auc")
    paired = numbers["paired"] or {}
    row |= {f"paired_{name}": paired.get(name) for name in PAIRED}
    row["wilcoxon_pvalue"] = (numbers["wilcoxon"] or {}).get("pvalue")
    if "captured" in numbers:
        row["captured"] = numbers["captured"]
    return row
