"""Columns of the page's slide table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foci.audits import AuditedSlide
from foci.audits.analysis.slides.per_slide import MeasuredSlides, SlideMetrics
from foci.audits.settings import View
from foci.metrics.inputs import Floats, defined_mean
from foci.reports.data.models import SlideColumns, SlideMeasures
from foci.reports.data.rounding import rounded


def slide_columns(measured: MeasuredSlides, slides: Sequence[AuditedSlide]) -> SlideColumns:
    """Names, classes and tile counts of all slides, and their metrics by view and ranking.

    A slide without a label has None in the label view.
    """
    everyone = measured.views["prediction"]
    by_id = {slide.slide_id: slide for slide in slides}
    names = measured.curves.slide_ids
    return SlideColumns(
        id=list(names),
        case=[by_id[name].case_id for name in names],
        label=[None if label < 0 else int(label) for label in everyone.labels],
        predicted=everyone.targets.tolist(),
        p=rounded(everyone.full.max(axis=1), 5),
        n=everyone.n_tiles.tolist(),
        measures={
            view: {name: _measures(measured, view, one) for name, one in by_ranking.items()}
            for view, by_ranking in measured.metrics.items()
        },
    )


def _measures(measured: MeasuredSlides, view: View, own: SlideMetrics) -> SlideMeasures:
    """Metrics of one ranking on every slide, averaged over its seeds."""
    rows, n = measured.views[view].rows, len(measured.curves.slide_ids)

    def spread(values: Floats) -> list[float | None]:
        column = np.full(n, np.nan)
        column[rows] = defined_mean(values, axis=0)
        spaced: list[float | None] = rounded(column, 5)
        return spaced

    unmeasured = np.full((1, len(rows)), np.nan)
    decisive = unmeasured if own.decisive is None else own.decisive.count
    found = unmeasured if own.decisive is None else (~np.isnan(decisive)).astype(np.float64)
    return SlideMeasures(
        k=spread(own.restricted),
        reach=spread(own.reached),
        falls_back=spread(own.reached * (own.stable != own.msk)),
        decisive=spread(decisive),
        found=spread(found),
        aukc=spread(own.aukc),
        faithfulness=spread(own.faithfulness),
    )
