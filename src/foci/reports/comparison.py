"""Write an HTML page that compares several audits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from foci.audits import StoredAudit
from foci.audits.compare.differences import differences
from foci.audits.compare.table import VIEW, changed_notes, distinct_names
from foci.audits.records import Interval
from foci.errors import FociError
from foci.files.atomic import sweep, write_whole
from foci.reports.data.models import ComparedAudit, ComparisonPayload
from foci.reports.data.payload import shortened
from foci.reports.page.html import render
from foci.reports.text.answers import answers


def write_comparison(audits: Sequence[StoredAudit | str | Path], out: str | Path) -> Path:
    """Write a page that compares audits: table, AUC against SHI, tiles per ranking.

    Args:
        audits: Finished audits, or their folders.
        out: Path of the HTML file.

    Returns:
        Path of the HTML file.
    """
    if not audits:
        raise FociError("audits", "are none", "give at least one audit folder")
    opened = [a if isinstance(a, StoredAudit) else StoredAudit.load(a) for a in audits]
    names = distinct_names(opened)
    rows = [_compared(audit, name) for audit, name in zip(opened, names, strict=True)]
    rankings = list(dict.fromkeys(name for row in rows for name in row.restricted))
    data = ComparisonPayload(
        rankings=rankings,
        k_max=max(row.k_max for row in rows),
        audits=[shortened(row) for row in rows],
    )
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    notes = _notes(opened, names)
    alarms = [
        (name, alarm) for audit, name in zip(opened, names, strict=True) for alarm in audit.alarms
    ]
    page = render(
        "comparison.html.j2",
        data,
        audits=rows,
        rankings=rankings,
        alarms=alarms,
        notes=notes,
        answers_of=[
            (name, answers(audit.summary, audit.manifest))
            for audit, name in zip(opened, names, strict=True)
        ],
    )
    sweep(path.parent)
    write_whole(path, page)
    return path


def _compared(audit: StoredAudit, name: str) -> ComparedAudit:
    """Numbers of one audit for the comparison page, all in the prediction view."""
    summary, manifest = audit.summary, audit.manifest
    numbers, told = summary.views[VIEW], summary.answers
    selector = numbers.get("selector")
    return ComparedAudit(
        name=name,
        architecture=manifest.backbone.architecture,
        n_slides=summary.n_slides,
        n_cases=summary.n_cases,
        n_decided=told.n_decided,
        kappa=summary.kappa,
        k_max=summary.k_max,
        auc=summary.full_bag.auc,
        map=told.map.answer,
        tiles=told.tiles.answer,
        order=told.order.answer,
        restricted={ranking: own.restricted for ranking, own in numbers.items()},
        reach={ranking: own.reach for ranking, own in numbers.items()},
        shi_native=_ends(None if selector is None else selector.shi_native),
        shi_random=_ends(None if selector is None else selector.shi_random),
    )


def _ends(interval: Interval | None) -> Interval | None:
    """Keep the estimate and the ends of an interval, without the values of single seeds."""
    if interval is None:
        return None
    return Interval(estimate=interval.estimate, low=interval.low, high=interval.high)


def _notes(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    changed = changed_notes(audits, names)
    every = [note for audit in audits for note in audit.manifest.notes]
    synthetic = dict.fromkeys(note for note in every if note.startswith("Synthetic"))
    differ = differences(audits, names) if len(audits) > 1 else []
    return [*changed, *synthetic, *(note[:1].upper() + note[1:] for note in differ)]
