"""An audit as the data that its page carries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from foci.audits import Audit
from foci.audits.settings import AnalysisSettings
from foci.metrics.inputs import Integers
from foci.reports.data.chosen import by_interest, within_bytes
from foci.reports.data.columns import slide_columns
from foci.reports.data.details import SlideDetails
from foci.reports.data.per_slide import PerSlide, per_slide
from foci.reports.data.rounding import rounded

DETAIL_BYTES = 1_650_000
"""What the table and the curves of single slides may take; page and code come on top."""

LEAST_BYTES = 300_000
"""What curves of single slides may take however long the table is."""

DRAWN = ("msk_cond", "restricted", "reach", "mean_curve", "km", "drops", "selected_only")
"""The numbers that figures show; the page itself holds the others."""


def payload(
    audit: Audit, summary: Mapping[str, Any], settings: AnalysisSettings, limit: int = DETAIL_BYTES
) -> dict[str, Any]:
    """Everything that the page's figures, table and slide views need.

    Args:
        audit: A finished audit.
        summary: Its numbers, at the threshold and budget of ``settings``.
        settings: Threshold and budget.
        limit: Bytes for the table and the curves of single slides. Slides beyond it keep their
            row in the table.
    """
    found = per_slide(audit, settings)
    columns = slide_columns(found, audit.slides)
    room = max(limit - len(to_json(columns)), min(limit, LEAST_BYTES))
    packer = SlideDetails(found, audit.slides, _longest(found))
    return {
        "kind": "audit",
        "classes": summary["classes"],
        "kappa": summary["kappa"],
        "k_max": summary["k_max"],
        "first_view": summary["first_view"],
        "rankings": [
            {"name": name, "columns": packer.columns_of(name)} for name in summary["rankings"]
        ],
        "headline": found.headline,
        "full_auc": rounded(summary["full_bag"]["auc"], 4),
        "numbers": {
            view: {
                name: rounded({key: numbers[key] for key in DRAWN}, 4)
                for name, numbers in by_ranking.items()
            }
            for view, by_ranking in summary["views"].items()
        },
        "verdict": rounded(summary["verdict"], 4),
        "ks": packer.ks.tolist(),
        "slides": columns,
        "details": _details(audit, packer, room),
    }


def to_json(data: Any) -> str:
    """Compact JSON."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _longest(found: PerSlide) -> Integers:
    first = found.curves.rankings[0]
    curves = found.curves.get(first, found.curves.seeds(first)[0])
    return max((curve.ks for curve in curves), key=len)


def _details(audit: Audit, packer: SlideDetails, room: int) -> dict[str, Any]:
    """The most interesting slides that fit: packed by a low guess of their size, then weighed."""
    names = packer.found.curves.slide_ids
    if not packer.columns:
        return {}
    wanted = by_interest(packer.found.hardest_first)
    sizes = [packer.bytes_of(row) for row in range(len(names))]
    hoped = set(within_bytes(wanted, sizes, room))
    row_of = {name: row for row, name in enumerate(names) if row in hoped}
    packed = {
        row_of[tiles.slide_id]: packer.pack(row_of[tiles.slide_id], tiles)
        for tiles in audit.tiles()
        if tiles.slide_id in row_of
    }
    weights = {row: len(to_json(detail)) for row, detail in packed.items()}
    kept = within_bytes([row for row in wanted if row in hoped], weights, room)
    return {str(row): packed[row] for row in kept}
