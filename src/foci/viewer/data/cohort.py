"""Collect the cohort for the viewer: answers, slide table, and what its presets choose by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foci.audits import StoredAudit
from foci.audits.analysis.slides.per_slide import MeasuredSlides
from foci.metrics.curve.sufficiency import reached
from foci.reports.data.payload import cohort_payload
from foci.reports.text.answers import answers
from foci.reports.text.wording import LINE
from foci.viewer.catalogue import Catalogue
from foci.viewer.data.models import CohortAnswer, SlideFlags, ViewerCohort

FIRST = 8
"""Tiles that two rankings are compared by."""


def cohort_of(catalogue: Catalogue) -> ViewerCohort:
    """The cohort of an audit."""
    audit = catalogue.audit
    summary = audit.summary
    native, best = compared(audit)
    changed = [] if audit.changed_note is None else [audit.changed_note]
    return ViewerCohort(
        audit=cohort_payload(audit, summary, catalogue.details),
        name=audit.manifest.name,
        line=LINE,
        answers=[
            CohortAnswer(
                question=one.question,
                short=one.short,
                tone=one.tone,
                sentences=list(one.sentences),
            )
            for one in answers(summary, audit.manifest)
        ],
        alarms=[*changed, *(f"{alarm.kind}: {alarm.sentence}" for alarm in audit.alarms)],
        notes=[*audit.manifest.notes, *summary.notes],
        native=native,
        best=best,
        shared_of=FIRST,
        flags=_flags(catalogue, native, best),
    )


def compared(audit: StoredAudit) -> tuple[str, str | None]:
    """The native ranking, and the one to compare it with: the answers' candidate, or the best.

    The best of the others needs the fewest tiles on average; random orders are no ranking.
    """
    measured = audit.measured()
    names = [name for name in measured.curves.rankings if name != "random"]
    if not names:
        return measured.curves.rankings[0], None
    native = "native" if "native" in names else names[0]
    candidate = audit.answers.order.candidate
    if candidate in names and candidate != native:
        return native, candidate
    own = measured.metrics["prediction"]
    others = [name for name in names if name != native]
    return native, min(others, key=lambda name: own[name].restricted.mean(), default=None)


def _flags(catalogue: Catalogue, native: str, best: str | None) -> SlideFlags:
    audit, measured = catalogue.audit, catalogue.audit.measured()
    everyone = measured.views["prediction"]
    names = [name for name in (native, best) if name is not None]
    return SlideFlags(
        undecided=(everyone.sure < audit.manifest.settings.kappa).tolist(),
        falls_back=_falls_back(measured, names).tolist(),
        shared=_shared(audit, [catalogue.details.columns_of(name) for name in names]),
        image=[name in catalogue.paths for name in measured.curves.slide_ids],
    )


def _falls_back(measured: MeasuredSlides, names: list[str]) -> NDArray[np.bool_]:
    """Slides on which a seed of one of the rankings reaches kappa and loses it again."""
    found = np.zeros(len(measured.curves.slide_ids), dtype=np.bool_)
    for name in names:
        own = measured.metrics["prediction"][name]
        found |= (reached(own.msk) & (own.stable != own.msk)).any(axis=0)
    return found


def _shared(audit: StoredAudit, columns: list[list[str]]) -> list[float | None]:
    """Jaccard index of the first tiles of two rankings, of the first seed of each."""
    names = audit.curves.slide_ids
    if len(columns) < 2 or not all(columns):
        return [None] * len(names)
    first, second = (one[0] for one in columns)
    by_slide: dict[str, float] = {}
    for tiles in audit.tiles():
        a, b = (set(tiles.order(name)[:FIRST].tolist()) for name in (first, second))
        by_slide[tiles.slide_id] = round(len(a & b) / len(a | b), 4)
    return [by_slide.get(name) for name in names]
