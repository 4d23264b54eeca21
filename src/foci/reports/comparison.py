"""Several audits on one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foci.atomic import write_whole
from foci.audits import Audit
from foci.audits.compare.differences import differences
from foci.audits.compare.table import VIEW, distinct_names
from foci.errors import FociError
from foci.reports.data.rounding import rounded
from foci.reports.page.html import render


def write_comparison(audits: Sequence[Audit | str | Path], out: str | Path) -> Path:
    """Write a page that sets audits side by side: table, AUC against SHI, tiles per ranking.

    Args:
        audits: Finished audits, or their folders.
        out: The file.

    Returns:
        The file.
    """
    if not audits:
        raise FociError("audits", "are none", "give at least one audit folder")
    found = [audit if isinstance(audit, Audit) else Audit.load(audit) for audit in audits]
    names = distinct_names(found)
    rows = [compared(audit, name) for audit, name in zip(found, names, strict=True)]
    rankings = list(dict.fromkeys(name for row in rows for name in row["restricted"]))
    data = {
        "kind": "comparison",
        "rankings": rankings,
        "k_max": max(row["k_max"] for row in rows),
        "audits": rounded(rows, 4),
    }
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    notes = _notes(found, names)
    page = render("comparison.html.j2", data, audits=rows, rankings=rankings, notes=notes)
    write_whole(path, page)
    return path


def compared(audit: Audit, name: str) -> dict[str, Any]:
    """What the page shows of an audit, all in the predicted-class view."""
    summary, manifest = audit.summary, audit.manifest
    numbers = summary["views"][VIEW]
    verdict = summary["verdict"]
    readout = numbers.get("selector")
    shown = readout or numbers.get("native") or next(iter(numbers.values()))
    return {
        "name": name,
        "architecture": manifest.get("backbone", {}).get("architecture", ""),
        "n_slides": summary["n_slides"],
        "kappa": summary["kappa"],
        "k_max": summary["k_max"],
        "auc": summary["full_bag"]["auc"],
        "verdict": verdict["verdict"] if verdict else None,
        "sentence": verdict["sentence"] if verdict else "No verdict: not all rankings were run.",
        "restricted": {name: found["restricted"] for name, found in numbers.items()},
        "shi_native": _interval(readout, "shi_native"),
        "shi_random": _interval(readout, "shi_random"),
        "reach": shown["reach"]["estimate"],
    }


def _interval(numbers: dict[str, Any] | None, key: str) -> dict[str, Any] | None:
    found = None if numbers is None else numbers[key]
    return None if found is None else {end: found[end] for end in ("estimate", "low", "high")}


def _notes(audits: Sequence[Audit], names: Sequence[str]) -> list[str]:
    every = [note for audit in audits for note in audit.manifest.get("notes", [])]
    synthetic = dict.fromkeys(note for note in every if note.startswith("Synthetic"))
    differ = differences(audits, names) if len(audits) > 1 else []
    return [*synthetic, *(note[:1].upper() + note[1:] for note in differ)]
