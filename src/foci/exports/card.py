"""The audit card: one page and one JSON file for the documentation of a model.

The page is Markdown that can be pasted into a model card as it is: it begins with a heading of the
second level, has no front matter and no HTML, and names no path of the machine that ran the audit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from foci.audits import StoredAudit
from foci.audits.manifest import TABLE
from foci.audits.records import AxisComparison, Interval
from foci.files.atomic import write_whole
from foci.words import counted, decimals, in_percent

INTENDED = (
    "Says whether the first tiles of the heat map are those that this model decides by, on the "
    "slides below. Says nothing about other models, other slides, or what is diagnostic."
)
LIMITS = (
    "Deciding tiles are those that the model needs: a model can be right for a wrong reason, and "
    "a map can be faithful to it.",
    "Only slides on which the model is sure are counted.",
    "The numbers hold for this cohort, these features and these weights; the hashes below name "
    "them.",
)


def audit_card(audit: StoredAudit) -> dict[str, Any]:
    """Content of the card, as JSON holds it."""
    manifest, summary = audit.manifest, audit.summary
    answers, truth = summary.answers, manifest.truth
    tiles = answers.tiles
    return {
        "model": manifest.name,
        "architecture": manifest.backbone.architecture,
        "classes": manifest.classes,
        "intended_reading": INTENDED,
        "answers": {
            "believe_the_map": {
                "answer": answers.map.answer,
                "map": answers.map.ranking,
                "sentences": answers.map.sentences,
                "against_random": _axes(answers.map.comparison),
            },
            "tiles": {
                "answer": tiles.answer,
                "order": tiles.ranking,
                "sentences": tiles.sentences,
                "slides_with_deciding_tiles": tiles.n_found,
                "of_slides": tiles.n_slides,
                "median": _ends(tiles.count),
                "quartiles": [tiles.count_low, tiles.count_high],
            },
            "better_order": {
                "answer": answers.order.short,
                "sentences": answers.order.sentences,
                "against_the_map": _axes(answers.order.against_native),
                "efficiency_of_the_map": _ends(answers.order.efficiency),
            },
        },
        "sure": {
            "threshold": summary.kappa,
            "slides": answers.n_decided,
            "of_slides": answers.n_slides,
            "patients": answers.n_cases,
        },
        "interval_level": summary.level,
        "skipped_slides": summary.n_skipped,
        "truth": None if truth is None else truth.model_dump(mode="json"),
        "alarms": [alarm.sentence for alarm in audit.alarms],
        "changed": audit.changed_note,
        "limits": list(LIMITS),
        "sha256": {
            "model": manifest.backbone.fingerprint,
            "features": manifest.features_sha256,
            "slides and labels": manifest.run_inputs.get(TABLE),
        },
        "versions": manifest.versions,
        "finished": manifest.finished,
        "reproduce": _command(audit),
        "settings": manifest.settings.model_dump(mode="json", exclude_defaults=True),
    }


def _axes(comparison: Any) -> list[dict[str, Any]]:
    """The axes of a comparison, each with its counts and interval."""
    axes: Sequence[AxisComparison] = [] if comparison is None else comparison.axes
    names = ("axis", "measure", "result", "d", "low", "high", "wins", "losses", "n_slides")
    return [{name: getattr(axis, name) for name in names} for axis in axes]


def _ends(interval: Interval | None) -> dict[str, float | None] | None:
    if interval is None:
        return None
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high}


def _command(audit: StoredAudit) -> str:
    """How to run the audit again; files by their name alone."""
    sources = {name: PurePath(path).name for name, path in audit.manifest.sources.items()}
    options = " ".join(
        f"--{name} {sources.get(name, name.upper())}" for name in ("model", "features", "labels")
    )
    split, kappa = audit.manifest.split, audit.manifest.settings.kappa
    return f"foci audit {options} --split {split} --kappa {kappa:g} --out audit"


def card_page(card: dict[str, Any]) -> str:
    """The card as Markdown."""
    return "\n".join(_lines(card)) + "\n"


def _lines(card: dict[str, Any]) -> Iterator[str]:
    answers, sure = card["answers"], card["sure"]
    yield f"## Heat map audit of {_plain(card['model'])}"
    yield ""
    yield _plain(card["intended_reading"])
    yield ""
    for alarm in card["alarms"]:
        yield f"> **Read first:** {_plain(alarm)}"
        yield ""
    if card["changed"]:
        yield f"> **Read first:** {_plain(card['changed'])}"
        yield ""
    yield "| question | answer |"
    yield "|---|---|"
    for question, name in (
        ("Can I believe this heat map?", "believe_the_map"),
        ("How many tiles does the decision hang on?", "tiles"),
        ("Is there a better order?", "better_order"),
    ):
        yield f"| {question} | **{_plain(answers[name]['answer'])}** |"
    yield ""
    slides, patients = counted(sure["of_slides"], "slide"), counted(sure["patients"], "patient")
    yield (
        f"Measured on the {sure['slides']} of {slides} where the model is at least "
        f"{in_percent(sure['threshold'])} sure ({patients})."
    )
    for name, title in (
        ("believe_the_map", "The map"),
        ("tiles", "Deciding tiles"),
        ("better_order", "A better order"),
    ):
        yield from ("", f"### {title}", "")
        yield from (f"- {_plain(sentence)}" for sentence in answers[name]["sentences"])
    yield from _comparisons(card)
    if card["truth"]:
        yield from _against_truth(card["truth"])
    yield from ("", "### Limits", "")
    yield from (f"- {_plain(limit)}" for limit in card["limits"])
    yield from ("", "### How to reproduce", "", "```", card["reproduce"], "```", "")
    yield from ("| SHA-256 of | |", "|---|---|")
    yield from (f"| {what} | `{value}` |" for what, value in card["sha256"].items() if value)
    yield ""
    versions = ", ".join(f"{name} {value}" for name, value in card["versions"].items())
    yield f"Versions: {_plain(versions)}. Finished: {card['finished']}."


def _comparisons(card: dict[str, Any]) -> Iterator[str]:
    rows = [
        (what, axis)
        for what, name, key in (
            ("the map against random tiles", "believe_the_map", "against_random"),
            ("the better order against the map", "better_order", "against_the_map"),
        )
        for axis in card["answers"][name][key]
    ]
    if not rows:
        return
    yield from ("", "### Counts behind the answers", "")
    net = f"net share ({in_percent(card['interval_level'])} interval)"
    yield f"| comparison | test | better on | worse on | of slides | {net} |"
    yield "|---|---|---|---|---|---|"
    for what, axis in rows:
        test = "keep" if axis["axis"] == "sufficiency" else "remove"
        counts = " | ".join(str(axis[name]) for name in ("wins", "losses", "n_slides"))
        yield f"| {what} | {test} | {counts} | {_with_ends(axis, 'd')} |"


def _against_truth(truth: dict[str, Any]) -> Iterator[str]:
    yield from ("", "### Against a pathologist's truth", "")
    left_out = truth["n_unmarked"] + truth["n_without"]
    yield f"{_plain(truth['what'])} {counted(truth['n_slides'], 'slide')}, {left_out} left out."
    yield from ("", "| order | average precision | chance | first 8 tiles true | chance |")
    yield "|---|---|---|---|---|"
    for name, own in truth["rankings"].items():
        cells = [
            shown
            for found in (own["average_precision"], own["precision8"])
            for shown in (_with_ends(found, "estimate"), _number(found["chance"]))
        ]
        yield f"| {_plain(name)} | {' | '.join(cells)} |"


def _with_ends(interval: dict[str, Any], name: str) -> str:
    shown = _number(interval[name])
    if interval["low"] is None:
        return shown
    return f"{shown} ({_number(interval['low'])} to {_number(interval['high'])})"


def _number(value: float | None) -> str:
    return "not known" if value is None else decimals(value, 2)


def _plain(text: Any) -> str:
    """Text that Markdown shows as it is, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", " ".join(str(text).split()))


def write_card(audit: StoredAudit, folder: Path) -> list[Path]:
    """Write ``card.md`` and ``card.json``."""
    card = audit_card(audit)
    files = [folder / "card.md", folder / "card.json"]
    write_whole(files[0], card_page(card))
    text = json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(files[1], text)
    return files
