"""Collect the data that the page of an audit embeds."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import BaseModel

from foci.audits import StoredAudit, Summary
from foci.audits.analysis.slides.per_slide import MeasuredSlides
from foci.audits.analysis.summary import RankingNumbers
from foci.audits.settings import AnalysisSettings
from foci.metrics.inputs import Integers
from foci.reports.data.chosen import by_interest, within_bytes
from foci.reports.data.columns import slide_columns
from foci.reports.data.details import SlideDetails
from foci.reports.data.models import (
    AuditPayload,
    DrawnAnswers,
    DrawnDecided,
    DrawnNumbers,
    RankingColumns,
    SlideDetail,
)
from foci.reports.data.rounding import rounded
from foci.reports.data.tissue import PICTURE_BYTES, TissuePictures

M = TypeVar("M", bound=BaseModel | None)

DETAIL_BYTES = 1_650_000
"""Limit for the slide table and the curves of single slides; page and script come on top."""

LEAST_BYTES = 300_000
"""Limit for the curves of single slides, even if the slide table takes all the rest."""


def payload(
    audit: StoredAudit,
    summary: Summary,
    settings: AnalysisSettings,
    limit: int = DETAIL_BYTES,
    picture_limit: int = PICTURE_BYTES,
) -> AuditPayload:
    """Collect everything that the figures, the table and the slides of a page need.

    Args:
        audit: A finished audit.
        summary: Its numbers, at the threshold and budget of ``settings``.
        settings: Threshold and budget.
        limit: Bytes for the slide table and the curves of single slides; slides whose curves do
            not fit keep their row in the table.
        picture_limit: Bytes for pictures of the slides, on top of that.
    """
    measured = audit.measured(settings)
    packer = SlideDetails(measured, audit.slides, longest_counts(measured), settings.kappa)
    table = cohort_payload(audit, summary, packer)
    room = max(limit - len(to_json(table.slides)), min(limit, LEAST_BYTES))
    return table.model_copy(
        update={
            "answers": DrawnAnswers(
                ranking=summary.answers.tiles.ranking, candidate=summary.answers.order.candidate
            ),
            "numbers": {
                view: {name: _drawn(numbers) for name, numbers in by_ranking.items()}
                for view, by_ranking in summary.views.items()
            },
            "details": _details(audit, packer, room, picture_limit),
        }
    )


def cohort_payload(audit: StoredAudit, summary: Summary, packer: SlideDetails) -> AuditPayload:
    """Collect what report and viewer share: the cohort and the table of its slides."""
    return AuditPayload(
        classes=summary.classes,
        kappa=summary.kappa,
        k_max=summary.k_max,
        first_view=summary.first_view,
        rankings=[
            RankingColumns(name=name, columns=packer.columns_of(name)) for name in summary.rankings
        ],
        headline=packer.measured.headline,
        answers=None,
        level=summary.level,
        n_cases=summary.n_cases,
        full_auc=rounded(summary.full_bag.auc, 5),
        numbers={},
        ks=packer.ks.tolist(),
        slides=slide_columns(packer.measured, audit.slides),
        details={},
    )


def _drawn(numbers: RankingNumbers) -> DrawnNumbers:
    content = numbers.model_dump(include=set(DrawnNumbers.model_fields))
    if numbers.decided is not None:
        content["decided"] = numbers.decided.model_dump(include=set(DrawnDecided.model_fields))
    return DrawnNumbers.model_validate(rounded(content, 5))


def to_json(data: BaseModel) -> str:
    """Serialise as compact JSON; whole numbers have no decimal point."""
    content = rounded(data.model_dump(mode="json"), 12)
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def shortened(record: M) -> M:
    """Round the numbers of a record to the digits that a page shows."""
    return record if record is None else record.model_validate(rounded(record.model_dump(), 5))


def longest_counts(measured: MeasuredSlides) -> Integers:
    """Counts of the longest curve of an audit."""
    first = measured.curves.rankings[0]
    curves = measured.curves.get(first, measured.curves.seeds(first)[0])
    return max((curve.ks for curve in curves), key=len)


def _details(
    audit: StoredAudit, packer: SlideDetails, room: int, picture_limit: int
) -> dict[str, SlideDetail]:
    """Pack the most interesting slides, as many as fit.

    A low estimate of their sizes decides which slides are packed, the true size which are kept.
    """
    names = packer.measured.curves.slide_ids
    if not packer.columns:
        return {}
    pictures = TissuePictures(audit)
    wanted = by_interest(packer.measured.hardest_first)
    sizes = [packer.bytes_of(row) for row in range(len(names))]
    hoped = set(within_bytes(wanted, sizes, room))
    row_of = {name: row for row, name in enumerate(names) if row in hoped}
    packed = {
        row_of[tiles.slide_id]: packer.pack(row_of[tiles.slide_id], tiles)
        for tiles in audit.tiles()
        if tiles.slide_id in row_of
    }
    weights = {row: len(to_json(detail)) for row, detail in packed.items()}
    kept = set(within_bytes([row for row in wanted if row in hoped], weights, room))
    ordered = {row: packed[row] for row in wanted if row in kept}
    pictured = pictures.add(ordered, dict(enumerate(names)), picture_limit)
    return {str(row): pictured[row] for row in sorted(kept)}
