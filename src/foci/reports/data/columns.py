"""The table of slides, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foci.audits import AuditedSlide
from foci.audits.analysis.per_slide import SlideMetrics
from foci.audits.settings import View
from foci.metrics.inputs import Floats, defined_mean
from foci.reports.data.per_slide import PerSlide
from foci.reports.data.rounding import rounded


def slide_columns(found: PerSlide, slides: Sequence[AuditedSlide]) -> dict[str, Any]:
    """Names, classes and tile counts of all slides, and their numbers by view and ranking.

    A slide that is not in a view (it has no label) has None there.
    """
    everyone = found.views["prediction"]
    known = {slide.slide_id: slide for slide in slides}
    names = found.curves.slide_ids
    return {
        "id": list(names),
        "case": [known[name].case_id for name in names],
        "label": [None if label < 0 else int(label) for label in everyone.labels],
        "predicted": everyone.targets.tolist(),
        "p": rounded(everyone.full.max(axis=1), 4),
        "n": everyone.n_tiles.tolist(),
        "measures": {
            view: {name: _measures(found, view, one) for name, one in by_ranking.items()}
            for view, by_ranking in found.measured.items()
        },
    }


def _measures(found: PerSlide, view: View, measured: SlideMetrics) -> dict[str, Any]:
    """Means over the seeds of a ranking."""
    rows, n = found.views[view].rows, len(found.curves.slide_ids)

    def spread(values: Floats) -> list[float | None]:
        column = np.full(n, np.nan)
        column[rows] = defined_mean(values, axis=0)
        spaced: list[float | None] = rounded(column, 4)
        return spaced

    return {
        "k": spread(measured.restricted),
        "reach": spread(measured.reached),
        "aukc": spread(measured.aukc),
        "faithfulness": spread(measured.faithfulness),
    }
