"""Derive the verdict of an audit, always in the prediction view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from foci.audits.analysis.per_ranking import GREEDY, NATIVE, RANDOM
from foci.audits.analysis.per_slide import SlideMetrics
from foci.audits.analysis.summary import VerdictSummary
from foci.audits.analysis.verdict_sentence import verdict_sentence
from foci.audits.analysis.views import ViewSlides
from foci.audits.settings import AnalysisSettings
from foci.metrics import judge

SELECTOR = "selector"
NEEDED = (NATIVE, SELECTOR, RANDOM)


def judgement(
    measured: Mapping[str, SlideMetrics], population: ViewSlides, settings: AnalysisSettings
) -> VerdictSummary | None:
    """Verdict from the native ranking, the selector and the random orders.

    The selector's count on a slide is the mean of its restricted counts over the seeds; the slide
    is unreached only if no seed reaches it. The fewest possible tiles are the first count that was
    revealed: a grid that starts at 8 cannot show that 1 suffices.

    Args:
        measured: Metrics of every slide in the prediction view, by ranking.
        population: The slides of that view.
        settings: Budget, margin and level.

    Returns:
        None unless all three rankings were run.
    """
    if any(name not in measured for name in NEEDED):
        return None
    selector = measured[SELECTOR]
    mean = np.where(selector.reached.any(axis=0), selector.restricted.mean(axis=0), np.nan)
    verdict = judge(
        measured[NATIVE].msk[0],
        mean,
        measured[RANDOM].msk,
        population.cases,
        greedy=measured[GREEDY].msk[0] if GREEDY in measured else None,
        first_count=int(measured[NATIVE].curve.ks[0]),
        k_max=settings.k_max,
        margin=settings.margin,
        n_boot=settings.n_boot,
        level=settings.level,
    )
    return VerdictSummary(**asdict(verdict), sentence=verdict_sentence(verdict))
