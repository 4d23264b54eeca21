"""Compute the summary of an audit from the metrics of its slides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foci.audits.agreement import PairAgreement
from foci.audits.alarms import caveats
from foci.audits.answers import answer_questions
from foci.audits.decided import decided_numbers
from foci.audits.folder import FORMAT
from foci.audits.measure import MeasuredSlides, SlideMetrics, ViewSlides
from foci.audits.numbers import full_bag, ranking_numbers, resample, selected_only
from foci.audits.settings import AnalysisSettings
from foci.audits.stored import CurveTable
from foci.audits.summary import RankingNumbers, SelectedOnly, Summary


def summarise(
    measured: MeasuredSlides,
    curves: CurveTable,
    classes: Sequence[str],
    settings: AnalysisSettings,
    agreement: Sequence[PairAgreement],
    n_skipped: int = 0,
) -> Summary:
    """Average metrics over slides, compare the rankings, and answer the three questions.

    Args:
        measured: Metrics of every slide, at the threshold and budget of ``settings``.
        curves: The stored curves, up to the budget of the run.
        classes: Class names, in the model's order.
        settings: Threshold, budget, first view, intervals; they may differ from those of the run.
        agreement: Of every pair of rankings.
        n_skipped: Number of skipped slides.
    """
    views, metrics = measured.views, measured.metrics
    labelled, everyone = views.get("label"), views["prediction"]
    kept = selected_only(curves, labelled)
    numbers = {
        view: _numbers(metrics[view], slides, settings, kept) for view, slides in views.items()
    }
    own = metrics["prediction"]
    decided = {name: decided_numbers(one, everyone, settings, classes) for name, one in own.items()}
    numbers["prediction"] = {
        name: one.model_copy(update={"decided": decided[name]})
        for name, one in numbers["prediction"].items()
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
        agreement=list(agreement),
        answers=answer_questions(own, everyone, classes, settings, decided),
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
