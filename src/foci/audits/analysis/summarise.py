"""Compute the summary of an audit from the metrics of its slides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from foci.audits.analysis.agreement import agreement
from foci.audits.analysis.bootstrap import resample
from foci.audits.analysis.caveats import caveats
from foci.audits.analysis.per_ranking import ranking_numbers
from foci.audits.analysis.per_slide import MeasuredSlides, SlideMetrics
from foci.audits.analysis.selected_only import full_bag, selected_only
from foci.audits.analysis.summary import RankingNumbers, SelectedOnly, Summary
from foci.audits.analysis.verdict import judgement
from foci.audits.analysis.views import ViewSlides
from foci.audits.folder.curves import CurveTable
from foci.audits.folder.names import FORMAT
from foci.audits.folder.tile_scores import RankedTiles
from foci.audits.settings import AnalysisSettings


def summarise(
    measured: MeasuredSlides,
    curves: CurveTable,
    classes: Sequence[str],
    settings: AnalysisSettings,
    tiles: Iterable[RankedTiles],
    n_skipped: int = 0,
) -> Summary:
    """Average metrics over slides, compare the rankings, and derive the verdict.

    Args:
        measured: Metrics of every slide, at the threshold and budget of ``settings``.
        curves: The stored curves, up to the budget of the run.
        classes: Class names, in the model's order.
        settings: Threshold, budget, first view, intervals; they may differ from those of the run.
        tiles: The stored scores, for the agreement between rankings.
        n_skipped: Number of skipped slides.
    """
    views, metrics = measured.views, measured.metrics
    labelled, everyone = views.get("label"), views["prediction"]
    kept = {name: selected_only(curves, name, labelled) for name in curves.rankings}
    numbers = {
        view: _numbers(metrics[view], slides, settings, kept) for view, slides in views.items()
    }
    return Summary(
        format=FORMAT,
        classes=list(classes),
        n_slides=len(everyone),
        n_cases=len(set(everyone.cases)),
        n_skipped=n_skipped,
        kappa=settings.kappa,
        k_max=settings.k_max,
        level=settings.level,
        first_view=settings.target if settings.target in views else "prediction",
        full_bag=full_bag(labelled),
        rankings=list(curves.rankings),
        views=numbers,
        agreement=agreement(curves, tiles),
        verdict=judgement(metrics["prediction"], everyone, settings),
        notes=caveats(views, metrics, classes, settings, numbers),
    )


def _numbers(
    metrics: Mapping[str, SlideMetrics],
    slides: ViewSlides,
    settings: AnalysisSettings,
    kept: Mapping[str, SelectedOnly | None],
) -> dict[str, RankingNumbers]:
    """Numbers of every ranking in a view, all with the same bootstrap draws."""
    drawn = resample(list(metrics.values()), slides.cases, settings.n_boot)
    return {
        name: ranking_numbers(name, metrics, drawn, slides, settings, kept[name])
        for name in metrics
    }
