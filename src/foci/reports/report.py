"""Write HTML pages: the report of one audit, and a page that compares several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foci.audits import StoredAudit, Summary
from foci.audits.audit import changed_settings, recompute
from foci.audits.compare import VIEW, changed_notes, differences, distinct_names
from foci.audits.folder import REPORT
from foci.audits.manifest import Manifest
from foci.audits.records import Interval, OrderComparison
from foci.audits.settings import AuditSettings, Kappa, View
from foci.errors import FociError
from foci.files.atomic import sweep, write_whole
from foci.metrics import CARDS, Card
from foci.reports.html import render
from foci.reports.models import ComparedAudit, ComparisonPayload
from foci.reports.payload import payload, rounded
from foci.reports.survival import survival_section
from foci.reports.text import (
    Answer,
    ComparisonLine,
    Row,
    answers,
    as_ruled,
    audit_facts,
    comparison_lines,
    evidence,
    fixed,
    null_table,
    percent,
    plain_tables,
    readout_of,
    record_of,
    rows_of,
    seeds_of,
    settings_of,
    signed,
    signed_spread,
    spread,
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
            the answers relative to each slide's own confidence.
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
        name=manifest.name,
        alarms=[("", alarm) for alarm in audit.alarms],
        facts=audit_facts(manifest, summary),
        changed=_changed(audit, settings),
        notes=[*manifest.notes, *summary.notes],
        summary=summary,
        cards_of_answers=answer_cards(summary, manifest),
        evidence=evidence(summary.answers),
        nulls=null_table(summary.answers),
        readout=readout_of(manifest),
        survival=survival_section(summary),
        views=[(view, VIEW_NAMES[view]) for view in views],
        first_view=summary.first_view,
        numbers=numbers,
        seeds={view: seeds_of(summary, view) for view in views},
        plain=plain_tables(summary, data),
        truth=manifest.truth,
        skipped=audit.skipped,
        n_slides=len(data.slides.id),
        n_details=len(data.details),
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


def write_comparison(audits: Sequence[StoredAudit | str | Path], out: str | Path) -> Path:
    """Write a page that compares audits, or their folders; return its path.

    It shows a table of all audits, AUC against SHI, and the tiles needed per ranking.
    """
    if not audits:
        raise FociError("audits", "are none", "give at least one audit folder")
    opened = [a if isinstance(a, StoredAudit) else StoredAudit.load(a) for a in audits]
    names = distinct_names(opened)
    named = list(zip(names, opened, strict=True))
    rows = [_compared(audit, name) for name, audit in named]
    rankings = list(dict.fromkeys(name for row in rows for name in row.restricted))
    data = ComparisonPayload(
        rankings=rankings,
        k_max=max(row.k_max for row in rows),
        audits=[ComparedAudit.model_validate(rounded(row.model_dump(), 5)) for row in rows],
    )
    page = render(
        "comparison.html.j2",
        data,
        audits=rows,
        rankings=rankings,
        efficient=[name for name in rankings if any(name in row.efficiency for row in rows)],
        alarms=[(name, alarm) for name, audit in named for alarm in audit.alarms],
        notes=_notes(opened, names),
        answers_of=[(name, answers(audit.summary, audit.manifest)) for name, audit in named],
    )
    return _write(Path(out), page)


def _compared(audit: StoredAudit, name: str) -> ComparedAudit:
    """Numbers of one audit for the comparison page, all in the prediction view."""
    summary, manifest = audit.summary, audit.manifest
    numbers, found = summary.views[VIEW], summary.answers
    selector = numbers.get("selector")
    return ComparedAudit(
        name=name,
        architecture=manifest.backbone.architecture,
        n_slides=summary.n_slides,
        n_cases=summary.n_cases,
        n_decided=found.n_decided,
        kappa=summary.kappa,
        k_max=summary.k_max,
        auc=summary.full_bag.auc,
        map=found.map.answer,
        tiles=found.tiles.answer,
        order=found.order.answer,
        restricted={ranking: own.restricted for ranking, own in numbers.items()},
        reach={ranking: own.reach for ranking, own in numbers.items()},
        shi_native=_ends(None if selector is None else selector.shi_native),
        shi_random=_ends(None if selector is None else selector.shi_random),
        efficiency={
            ranking: own.decided.efficiency
            for ranking, own in numbers.items()
            if own.decided is not None and own.decided.efficiency is not None
        },
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


# The three answer cards: a sentence, a number with its interval, and a badge

_WANTED = {
    "yes": "better",
    "only as a pointer": "better",
    "sufficient, not decisive": "better",
    "headroom": "better",
    "mixed": "better",
    "no better than a content-free map": "better",
    "no better than chance": "same",
    "worse than chance": "worse",
    "native is better": "worse",
}
"""The result that an answer rests on: its axis gives the number on the card."""

_FEWER = {
    "MSK": "needs fewer tiles than {second}",
    "decisive K": "has the smaller decisive set, compared with {second}",
    "deletion area": "loses more when its first tiles are deleted, compared with {second}",
}


@dataclass(frozen=True)
class AnswerCard:
    """What a card shows.

    Attributes:
        number: As text; empty where nothing was measured.
        interval: Its interval or quartiles, as text.
        unit: What the number counts, in plain words.
        symbol: The same in the paper's symbols, for a tooltip.
        sample: On how many slides and patients it rests.
        lines: Comparisons to draw.
        slides: Whether the slides are drawn, a dot each.
        further: A second number in words.
        decided: How many slides are decided, for the card whose answer is a count.
    """

    answer: Answer
    number: str = ""
    interval: str = ""
    unit: str = ""
    symbol: str = ""
    sample: str = ""
    lines: tuple[ComparisonLine, ...] = ()
    slides: bool = False
    further: str = ""
    decided: str = ""

    @property
    def badge(self) -> str:
        """What the badge says: the short answer, or how many slides a count rests on."""
        return self.decided or self.answer.short


def answer_cards(summary: Summary, manifest: Manifest) -> tuple[AnswerCard, ...]:
    """The cards of an audit, in the prediction view."""
    found = summary.answers
    against = found.order.against_native or found.order.against_random
    on_map, on_tiles, on_order = answers(summary, manifest)
    return (
        _comparing(on_map, found.map.comparison, summary.level),
        _counting(on_tiles, summary),
        _proven(on_order, summary)
        if found.order.efficiency is not None
        else _comparing(on_order, against, summary.level, _saved(summary)),
    )


def _comparing(
    answer: Answer, comparison: OrderComparison | None, level: float, further: str = ""
) -> AnswerCard:
    """A card with the number of the axis that the answer rests on."""
    if comparison is None:
        return AnswerCard(answer)
    axes = [axis for axis in (comparison.necessity, comparison.sufficiency) if axis is not None]
    counting = [axis for axis in axes if axis.informative or axis.result == "worse"]
    wanted = [axis for axis in counting if axis.result == _WANTED.get(as_ruled(answer.short))]
    axis = next(iter([*wanted, *counting, *axes]), None)
    if axis is None:
        return AnswerCard(answer)
    ends = signed_spread(axis.low, axis.high)
    interval = f"{percent(level)} interval {ends}" if ends else "no interval"
    fewer = _FEWER[axis.measure].format(second=comparison.second)
    return AnswerCard(
        answer,
        number=signed(axis.d),
        interval=interval,
        unit=f"net share of slides on which {comparison.first} {fewer}",
        symbol=f"D on {axis.axis} ({axis.measure}): share of slides with fewer tiles under "
        f"{comparison.first}, minus share with more",
        sample=f"n = {counted(axis.n_slides, 'slide')} of {counted(axis.n_cases, 'patient')}, "
        f"{axis.n_differ} of them differ",
        lines=tuple(comparison_lines(comparison)),
        further=further,
    )


def _proven(answer: Answer, summary: Summary) -> AnswerCard:
    """A card with the map's efficiency, where the best order is proven."""
    order = summary.answers.order
    ends, beyond = spread(order.efficiency, 2), order.efficiency_beyond
    more = f", {beyond} more have a minimum beyond {summary.k_max} tiles" if beyond else ""
    return AnswerCard(
        answer,
        number=fixed(order.efficiency.estimate if order.efficiency else None, 2),
        interval=f"{percent(summary.level)} interval {ends}" if ends else "no interval",
        unit=f"efficiency of {summary.map}: the proven minimum of deciding tiles over those it "
        "needs, mean over slides",
        symbol="Eff: mean of K*/K, 0 where the order finds no decisive set",
        sample=f"n = {counted(order.efficiency_n, 'slide')}{more}",
        further="No order can do better than the minimum, proven, and no training.",
    )


def _counting(answer: Answer, summary: Summary) -> AnswerCard:
    found = summary.answers
    decided = f"{found.n_decided} of {counted(found.n_slides, 'slide')} decided"
    patients = f"of {counted(found.n_cases, 'patient')}"
    tiles = found.tiles
    if tiles.share is None:
        sample = patients if found.n_decided else "no patient has a decided slide"
        return AnswerCard(answer, sample=sample, decided=decided)
    number, _, found_on = answer.short.partition(", ")
    unit = f"under the {tiles.ranking} order"
    if tiles.count is not None:
        low, high = fixed(tiles.count_low, 0), fixed(tiles.count_high, 0)
        unit = (
            f"median over slides that have any, quartiles {low} and {high}; "
            f"{percent(tiles.of_slide)} of the slide's tiles; {unit}"
        )
    return AnswerCard(
        answer,
        number=number,
        interval=found_on,
        unit=unit,
        symbol="Decisive K (DK): the first K tiles suffice, and without them the decision flips",
        sample=f"n = {counted(tiles.n_slides, 'slide')} {patients}",
        slides=True,
        decided=decided,
    )


def _saved(summary: Summary) -> str:
    """Tiles saved by the candidate, the paper's SHI, in words."""
    numbers = summary.views["prediction"].get(summary.answers.order.candidate or "")
    saving = None if numbers is None else numbers.shi_native
    if saving is None or saving.estimate is None:
        return ""
    ends = spread(saving, 2)
    interval = f", {percent(summary.level)} interval {ends}" if ends else ""
    return f"Tiles saved against {summary.map} (SHI): {fixed(saving.estimate, 2)}{interval}"
