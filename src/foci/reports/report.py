"""Write HTML pages: the report of one audit, one that compares several, an audit in a notebook."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from foci.audits import StoredAudit, Summary
from foci.audits.audit import changed_settings, recompute
from foci.audits.compare import (
    VIEW,
    MapAgreement,
    changed_notes,
    differences,
    distinct_names,
    map_agreement,
)
from foci.audits.folder import REPORT
from foci.audits.manifest import Manifest
from foci.audits.records import RankingNumbers, RiskGroup
from foci.audits.settings import AuditSettings, Kappa, View
from foci.errors import FociError
from foci.files.atomic import sweep, write_whole
from foci.metrics import CARDS, Card
from foci.reports.first_screen import QUESTION, first_screen, methods_text
from foci.reports.html import render
from foci.reports.models import ComparedAudit, ComparisonPayload
from foci.reports.payload import drawn_chart, payload
from foci.reports.text import (
    LINE,
    Row,
    answers,
    audit_facts,
    evidence,
    fixed,
    null_table,
    percent,
    plain_name,
    plain_tables,
    readout_of,
    record_of,
    rows_of,
    seeds_of,
    settings_of,
    with_spread,
)
from foci.words import counted

VIEW_NAMES = {
    "prediction": "the model's prediction",
    "label": "the label",
    "class": "the class that was asked for",
}


def write_report(
    audit: StoredAudit | str | Path,
    out: str | Path | None = None,
    *,
    kappa: Kappa | None = None,
    k_max: int | None = None,
    view: View | None = None,
    summary: Summary | None = None,
) -> Path:
    """Write the report of an audit as one self-contained HTML file.

    The model does not run: another threshold or a smaller budget is read off the stored curves.

    Args:
        audit: A finished audit, or its folder.
        out: Path of the HTML file; default is ``report.html`` in the audit folder. Settings that
            differ from the audit's own become part of the name: ``report-kappa-0.8.html``.
        kappa: Operating confidence; None for the audit's own. ``"relative"`` keeps that and adds
            the answers over all slides, sure or not.
        k_max: Budget of tiles, at most the audit's own; None for that.
        view: Which view is shown first; None for the audit's own.
        summary: The numbers at these settings, if :func:`foci.audits.audit.recompute` has
            computed them already.
    """
    opened = audit if isinstance(audit, StoredAudit) else StoredAudit.load(audit)
    settings = changed_settings(opened, kappa=kappa, k_max=k_max, view=view)
    path = opened.folder / _name(opened, settings) if out is None else Path(out)
    numbers = summary or recompute(opened, kappa=kappa, k_max=k_max, view=view)
    return _write(path, report_page(opened, numbers, settings))


def report_page(audit: StoredAudit, summary: Summary, settings: AuditSettings) -> str:
    """Render the report as HTML."""
    manifest = audit.manifest
    data = payload(audit, summary, settings)
    views = list(summary.views)
    numbers = {view: rows_of(summary, view) for view in views}
    return render(
        "report.html.j2",
        data,
        pictures=True,
        name=manifest.name,
        first=first_screen(summary, manifest),
        question=QUESTION,
        methods=methods_text(summary, manifest),
        alarms=[("", alarm) for alarm in audit.alarms],
        facts=audit_facts(manifest, summary),
        changed=_changed(audit, settings),
        notes=[*manifest.notes, *summary.notes],
        summary=summary,
        answers=answers(summary, manifest),
        evidence=evidence(summary.answers),
        nulls=null_table(summary.answers),
        readout=readout_of(manifest),
        survival=survival_section(summary),
        views=[(view, VIEW_NAMES[view]) for view in views],
        numbers=numbers,
        seeds={view: seeds_of(summary, view) for view in views},
        plain=plain_tables(data),
        truth=manifest.truth,
        skipped=audit.skipped,
        n_slides=len(data.slides.id),
        n_details=len(data.details),
        n_maps=0 if data.gallery is None else sum(map(bool, data.gallery.maps)),
        settings=settings_of(settings),
        record=record_of(manifest),
        cards=_cards(summary, manifest, [row for rows in numbers.values() for row in rows]),
    )


def _write(path: Path, page: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent)
    write_whole(path, page)
    return path


def _cards(summary: Summary, manifest: Manifest, rows: Sequence[Row]) -> list[Card]:
    """Cards of the metrics that the page shows, each once."""
    shown = {"deletion_drop", "kaplan_meier", "decisive_k", "net_win_share"}
    shown |= {row.metric for row in rows}
    if any(seeds_of(summary, view) for view in summary.views):
        shown.add("seed_spread")
    if summary.full_bag.auc is not None:
        shown.add("auc")
    if summary.agreement:
        shown |= {"jaccard_at_k", "spearman"}
    if manifest.truth is not None:
        shown |= {"average_precision", "precision_at_k"}
    return [CARDS[name] for name in CARDS if name in shown]


def _changed(audit: StoredAudit, settings: AuditSettings) -> list[str]:
    """Sentences on files and settings that differ from those of the run; none if all agree."""
    stored = audit.manifest.settings
    differs = [
        f"{sign} = {new:g} (the audit ran at {old:g})"
        for sign, old, new in (
            ("κ", stored.kappa, settings.kappa),
            ("K_max", stored.k_max, settings.k_max),
        )
        if old != new
    ]
    marked = [] if audit.changed_note is None else [audit.changed_note]
    read_off = [f"Read off the stored curves at {' and '.join(differs)}."] if differs else []
    return [*marked, *read_off]


def _name(audit: StoredAudit, settings: AuditSettings) -> str:
    stored = audit.manifest.settings
    parts = [Path(REPORT).stem]
    parts += [f"kappa-{settings.kappa:g}"] * (settings.kappa != stored.kappa)
    parts += ["relative"] * (settings.relative and not stored.relative)
    parts += [f"k-{settings.k_max}"] * (settings.k_max != stored.k_max)
    parts += [settings.target] * (settings.target != stored.target)
    return "-".join(parts) + Path(REPORT).suffix


def write_comparison(
    audits: Sequence[StoredAudit | str | Path],
    out: str | Path,
    *,
    agreement: Sequence[MapAgreement] | None = None,
) -> Path:
    """Write a page that compares audits, or their folders; return its path.

    It shows the answers, one chart per audit, the agreement of their maps where they are of the
    same slides, and a table of numbers.

    Args:
        audits: Finished audits, or their folders.
        out: Path of the HTML file.
        agreement: Of the maps, if :func:`foci.audits.compare.map_agreement` has computed it.
    """
    if not audits:
        raise FociError("audits", "are none", "give at least one audit folder")
    opened = [a if isinstance(a, StoredAudit) else StoredAudit.load(a) for a in audits]
    names = distinct_names(opened)
    named = list(zip(names, opened, strict=True))
    rankings = list(dict.fromkeys(name for audit in opened for name in audit.summary.rankings))
    charts = [
        ComparedAudit(
            name=name,
            map_called=plain_name(audit.summary.map, audit.manifest),
            carried=drawn_chart(audit.summary.carried),
        )
        for name, audit in named
    ]
    proven = [
        name
        for audit in opened
        for name, own in audit.summary.views[VIEW].items()
        if own.decided is not None and own.decided.efficiency is not None
    ]
    page = render(
        "comparison.html.j2",
        ComparisonPayload(audits=charts),
        audits=[_compared(audit, name, Path(out).parent) for name, audit in named],
        rankings=rankings,
        efficient=[name for name in rankings if name in proven],
        agreement=map_agreement(opened, names) if agreement is None else agreement,
        alarms=[(name, alarm) for name, audit in named for alarm in audit.alarms],
        notes=_notes(opened, names),
        answers_of=[(name, answers(audit.summary, audit.manifest)) for name, audit in named],
    )
    return _write(Path(out), page)


def _compared(audit: StoredAudit, name: str, place: Path) -> dict[str, Any]:
    """One audit as the comparison page shows it, all in the prediction view."""
    summary, manifest = audit.summary, audit.manifest
    report = (audit.folder / REPORT).resolve()
    return {
        "name": name,
        "architecture": manifest.backbone.architecture,
        "link": quote(os.path.relpath(report, place.resolve())) if report.is_file() else None,
        "first": first_screen(summary, manifest),
        "summary": summary,
        "answers": summary.answers,
        "numbers": summary.views[VIEW],
    }


def _notes(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    changed = changed_notes(audits, names)
    every = [note for audit in audits for note in audit.manifest.notes]
    synthetic = dict.fromkeys(note for note in every if note.startswith("Synthetic"))
    differ = differences(audits, names) if len(audits) > 1 else []
    return [*changed, *synthetic, *(note[:1].upper() + note[1:] for note in differ)]


# The two risk groups of a survival model


_WIDTH, _HEIGHT, _LEFT, _BELOW, _RIGHT = 420, 220, 40, 34, 110


def survival_section(summary: Summary) -> Markup:
    """Both groups' share alive over time; empty for models of anything but survival."""
    groups = [group for group in summary.full_bag.risk_groups if group.n_slides]
    if not groups:
        return Markup()
    texts = [
        f"{group.name}: {counted(group.n_slides, 'slide')}, {counted(group.n_events, 'event')}"
        for group in summary.full_bag.risk_groups
    ]
    return Markup(  # noqa: S704 - what comes from data is escaped
        '<section id="survival" aria-labelledby="survival-title">\n'
        '<h2 id="survival-title">Survival of the two risk groups</h2>\n'
        f"{_figure(groups)}\n"
        f'<p class="soft">{escape("; ".join(texts))}. Groups by the side of the cut that the '
        "model's risk is on, which was fixed before these slides were looked at. Kaplan-Meier "
        "estimates, not corrected for anything else that shortens or prolongs a life.</p>\n"
        "</section>"
    )


def _figure(groups: list[RiskGroup]) -> str:
    end = max(group.last for group in groups)
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _BELOW - 10

    def x(time: float) -> float:
        return round(_LEFT + wide * time / end, 2)

    def y(share: float) -> float:
        return round(10 + high * (1 - share), 2)

    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        'aria-label="Share alive over time, by risk group" fill="none" stroke="currentColor">',
        f'<path d="M{_LEFT} 10V{y(0)}H{x(end)}" stroke-opacity="0.5"/>',
    ]
    text = 'fill="currentColor" stroke="none" font-size="12"'
    for part in (0, 0.5, 1):
        left = f'x="{_LEFT - 6}" y="{y(part) + 4}" text-anchor="end"'
        below = f'x="{x(part * end)}" y="{y(0) + 16}" text-anchor="middle"'
        parts += [f"<text {left} {text}>{part * 100:g} %</text>"]
        parts += [f"<text {below} {text}>{part * end:.3g}</text>"]
    parts.append(
        f'<text x="{x(end / 2)}" y="{_HEIGHT - 2}" text-anchor="middle" {text}>time</text>'
    )
    before = None
    for group, dashes in zip(groups, ("6 4", "none"), strict=False):
        path = f"M{x(0)} {y(1)}"
        for time, alive in zip(group.times, group.alive, strict=True):
            path += f"H{x(time)}V{y(alive)}"
        last = y(group.alive[-1] if group.alive else 1)
        place = last if before is None or abs(last - before) > 13 else before + 13
        before = place
        parts.append(
            f'<path d="{path}H{x(group.last)}" stroke-width="2" stroke-dasharray="{dashes}"/>'
            f'<text x="{x(group.last) + 6}" y="{place + 4}" {text}>{escape(group.name)}</text>'
        )
    return "".join([*parts, "</svg>"])


# An audit in the output of a notebook cell


MOST_BYTES = 2_500_000
"""Of one output. Jupyter drops what is over 3 MB, and says so only in passing."""

_SHOWN: tuple[tuple[str, Callable[[RankingNumbers], str]], ...] = (
    ("restricted mean K", lambda own: with_spread(own.restricted)),
    ("conditional MSK", lambda own: with_spread(own.msk_cond)),
    ("reach", lambda own: percent(own.reach.estimate)),
    ("AUKC", lambda own: fixed(own.aukc.estimate)),
    ("faithfulness AUC", lambda own: fixed(own.faithfulness.estimate)),
)


def notebook_html(audit: StoredAudit) -> str:
    """Alarms, answers and numbers as plain HTML, and the report below them in a frame.

    Where a viewer of notebooks removes frames, the plain part remains.
    """
    page = report_page(audit, audit.summary, audit.manifest.settings)
    return in_words(audit) + framed(page, f"Report on {audit.manifest.name}")


def in_words(audit: StoredAudit) -> str:
    """Alarms, answers and a small table, as HTML that needs no script."""
    head = "".join(f"<th>{name}</th>" for name in ("ranking", *(title for title, _ in _SHOWN)))
    rows = Markup("").join(
        Markup("<tr><th>{}</th>{}</tr>").format(
            name,
            Markup("").join(Markup("<td>{}</td>").format(show(own)) for _, show in _SHOWN),
        )
        for name, own in audit.summary.views["prediction"].items()
    )
    alarms = Markup("").join(
        Markup("<p><b>Alarm, {}:</b> {}</p>").format(one.kind, one.sentence) for one in audit.alarms
    )
    found = Markup("").join(
        Markup("<p><b>{} {}.</b> {}</p>").format(one.question, one.short, " ".join(one.sentences))
        for one in answers(audit.summary, audit.manifest)
    )
    skipped = audit.summary.n_skipped
    left_out = ""
    if skipped:
        left_out = f"; {counted(skipped, 'slide')} of the cohort skipped, see <code>.skipped</code>"
    marked = "" if audit.changed_note is None else f"<p><b>{escape(audit.changed_note)}</b></p>"
    return (
        f"<p><b>{escape(audit.manifest.name)}</b></p>{marked}{alarms}{found}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>{counted(audit.summary.n_slides, 'slide')} audited{left_out}.</p><p>{LINE}</p>"
    )


def framed(page: str, title: str) -> str:
    """A self-contained page as a sandboxed iframe.

    Its script runs, but in an origin of its own: it reaches neither the notebook nor its cookies.
    A page that is too large for a notebook gives a sentence instead.

    >>> framed("<p>it's&nbsp;1</p>", "report").rpartition(" ")[2]
    "srcdoc='&lt;p>it&#39;s&amp;nbsp;1&lt;/p>'></iframe>"
    """
    content = page.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#39;")
    frame = (
        f"<iframe title='{escape(title)}' sandbox='allow-scripts' loading='lazy' "
        "style='width: 100%; height: 80vh; min-height: 480px; border: 1px solid #8886' "
        f"srcdoc='{content}'></iframe>"
    )
    size = len(json.dumps(frame, ensure_ascii=False).encode())
    if size <= MOST_BYTES:
        return frame
    return (
        f"<p>The page is {size / 1e6:.1f} MB, too large for a notebook; write it with "
        '<code>.to_html("report.html")</code>.</p>'
    )
