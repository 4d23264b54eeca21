"""Compute the summary of an audit from the metrics of its slides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foci.audits.analysis.agreement import PairAgreement
from foci.audits.analysis.alarms.caveats import caveats
from foci.audits.analysis.answers.decided import decided_numbers
from foci.audits.analysis.answers.questions import answer_questions
from foci.audits.analysis.bootstrap import resample
from foci.audits.analysis.per_ranking import ranking_numbers
from foci.audits.analysis.selected_only import full_bag, selected_only
from foci.audits.analysis.slides.per_slide import MeasuredSlides, SlideMetrics
from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.analysis.summary import RankingNumbers, SelectedOnly, Summary
from foci.audits.folder.curves import CurveTable
from foci.audits.folder.names import FORMAT
from foci.audits.settings import AnalysisSettings


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
    summary = Summary(
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
        notes=caveats(views, metrics, classes, settings, numbers),
    )
    return with_answers(summary, measured, settings)


def with_answers(summary: Summary, measured: MeasuredSlides, settings: AnalysisSettings) -> Summary:
    """Add the numbers over decided slides and the three answers to a summary.

    Also for summaries of format 1: their curves hold enough to bound decisive K from above.
    """
    metrics, group = measured.metrics["prediction"], measured.views["prediction"]
    decided = {
        name: decided_numbers(own, group, settings, summary.classes)
        for name, own in metrics.items()
    }
    answers = answer_questions(metrics, group, summary.classes, settings, decided)
    numbers = {
        name: own.model_copy(update={"decided": decided[name]})
        for name, own in summary.views["prediction"].items()
    }
    views = {**summary.views, "prediction": numbers}
    return summary.model_copy(update={"views": views, "answers": answers})


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
