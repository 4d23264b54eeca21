"""From stored curves to every number of an audit."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from foci.audits.analysis.agreement import agreement
from foci.audits.analysis.bootstrap import resample
from foci.audits.analysis.caveats import notes
from foci.audits.analysis.per_ranking import numbers
from foci.audits.analysis.per_slide import SlideMetrics, measure_slides
from foci.audits.analysis.selected_only import full_bag, selected_only
from foci.audits.analysis.verdict import judgement
from foci.audits.analysis.views import ViewSlides
from foci.audits.folder.curves import CurveTable
from foci.audits.folder.names import FORMAT
from foci.audits.folder.slides import AuditedSlide
from foci.audits.folder.tile_scores import RankedTiles
from foci.audits.settings import AnalysisSettings


def summarise(
    curves: CurveTable,
    slides: Sequence[AuditedSlide],
    classes: Sequence[str],
    settings: AnalysisSettings,
    tiles: Iterable[RankedTiles],
    n_skipped: int = 0,
) -> dict[str, Any]:
    """All numbers of an audit, as plain Python values ready for JSON; None where undefined.

    Args:
        curves: The stored curves.
        slides: The slides that have curves.
        classes: Class names, in the model's order.
        settings: Threshold, budget, first view, intervals; they may differ from those of the run.
        tiles: The stored scores, for the agreement between rankings.
        n_skipped: Slides that were left out.
    """
    measurement = measure_slides(curves, slides, classes, settings)
    views, measured = measurement.views, measurement.measured
    labelled = views.get("label")
    kept = {name: selected_only(curves, name, labelled) for name in curves.rankings}
    said = {
        view: {
            name: {**found, "selected_only": kept[name]}
            for name, found in _numbers(measured[view], group, settings).items()
        }
        for view, group in views.items()
    }
    everyone = views["prediction"]
    summary = {
        "format": FORMAT,
        "classes": list(classes),
        "n_slides": len(everyone),
        "n_cases": len(set(everyone.cases)),
        "n_skipped": n_skipped,
        "kappa": settings.kappa,
        "k_max": settings.k_max,
        "level": settings.level,
        "first_view": settings.target if settings.target in views else "prediction",
        "full_bag": full_bag(labelled),
        "rankings": list(curves.rankings),
        "views": said,
        "agreement": agreement(curves, tiles),
        "verdict": judgement(measured["prediction"], everyone, settings),
        "notes": notes(views, measured, classes, settings, said),
    }
    plain: dict[str, Any] = as_plain(summary)
    return plain


def to_json(summary: Mapping[str, Any]) -> str:
    """The text of ``summary.json``: the same numbers give the same bytes."""
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_plain(value: Any) -> Any:
    """NumPy to Python, all the way down; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [as_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _numbers(
    measured: Mapping[str, SlideMetrics], group: ViewSlides, settings: AnalysisSettings
) -> dict[str, dict[str, Any]]:
    drawn = resample(list(measured.values()), group.cases, settings.n_boot)
    return {name: numbers(name, measured, drawn, group, settings) for name in measured}
