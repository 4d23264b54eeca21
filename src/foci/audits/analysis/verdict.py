"""The verdict of an audit, always on the model's own prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from foci.audits.analysis.per_ranking import GREEDY, NATIVE, RANDOM
from foci.audits.analysis.per_slide import Measured
from foci.audits.analysis.verdict_sentence import verdict_sentence
from foci.audits.analysis.views import Population
from foci.audits.settings import Reading
from foci.metrics import judge

SELECTOR = "selector"
NEEDED = (NATIVE, SELECTOR, RANDOM)


def judgement(
    measured: Mapping[str, Measured], population: Population, reading: Reading
) -> dict[str, Any] | None:
    """Compare the native ranking, the selector and the random orders.

    The selector's count on a slide is the mean of its restricted counts over the seeds, and
    unreached only where no seed reaches. The fewest tiles possible are those of the first count
    that was revealed: a grid that starts at 8 cannot show that 1 suffices.

    Args:
        measured: Every ranking in the prediction view.
        population: The slides of that view.
        reading: Budget, margin and level.

    Returns:
        :class:`foci.metrics.Verdict` and its sentence; None unless all three rankings were run.
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
        k_max=reading.k_max,
        margin=reading.margin,
        n_boot=reading.n_boot,
        level=reading.level,
    )
    sentence = verdict_sentence(verdict)
    return {"verdict": verdict.verdict, "sentence": sentence, **asdict(verdict)}
