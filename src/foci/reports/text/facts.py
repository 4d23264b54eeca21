"""Facts about an audit for its report (settings, sources, hashes), as pairs of name and value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from foci.audits.analysis.summary import Summary
from foci.audits.folder.manifest import Manifest
from foci.audits.settings import AuditSettings
from foci.reports.text.wording import fixed, percent
from foci.words.plural import counted

Facts = list[tuple[str, str]]

_FROM_FILE = "from-file="
"""Before the path of a map; a page shows the file's name alone."""


def audit_facts(manifest: Manifest, summary: Summary) -> Facts:
    """Facts for the line under the title: classifier, slides, classes, AUC, confidence."""
    n = summary.n_skipped
    skipped = f", {n} skipped in the whole cohort" if n else ""
    patients = counted(summary.n_cases, "patient")
    full = summary.full_bag
    facts = [
        ("classifier", _architecture(manifest)),
        ("slides", f"{summary.n_slides} of {patients}{skipped}"),
        ("split", manifest.split),
        ("classes", ", ".join(summary.classes)),
        ("AUC", fixed(full.auc) if full.auc is not None else ""),
        ("accuracy", percent(full.accuracy) if full.accuracy is not None else ""),
        ("confidence κ", f"{summary.kappa:g}"),
        ("at most", counted(summary.k_max, "tile")),
    ]
    return [(name, value) for name, value in facts if value]


def settings_of(settings: AuditSettings) -> Facts:
    """Settings that the page was written with."""
    return [(name, _short(value)) for name, value in settings.model_dump(mode="json").items()]


def record_of(manifest: Manifest) -> Facts:
    """Sources, versions and hashes of an audit."""
    facts: list[tuple[str, str | int | None]] = [
        ("audit key", manifest.key),
        ("started", manifest.started),
        ("finished", manifest.finished),
        ("weights", manifest.backbone.fingerprint),
        ("features", manifest.features_sha256),
    ]
    facts += [(f"source: {name}", value) for name, value in manifest.sources.items()]
    facts += [
        (f"selector, seed {s.seed}", f"{s.recipe}, gate at {s.site}, epoch {s.best_epoch}, "
         f"weights {s.weights_sha256}")
        for s in manifest.selectors
    ]  # fmt: skip
    facts += [(f"slides: {name}", count) for name, count in manifest.slides or ()]
    facts += [(f"version: {name}", value) for name, value in manifest.versions.items()]
    facts += [(f"SHA-256: {name}", value) for name, value in manifest.files.items()]
    facts += [(f"SHA-256: {PurePath(name).name}", value) for name, value in manifest.maps.items()]
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


@dataclass(frozen=True)
class TruthTable:
    """Comparison of the rankings with annotated tiles, as the page shows it.

    Attributes:
        what: What was marked, and by whom.
        n_slides: Slides with a marked tile.
        chance: Mean precision of a random order.
        rows: Column, precision among the first 8 tiles, average precision.
    """

    what: str
    n_slides: int
    chance: float | None
    rows: tuple[tuple[str, float, float | None], ...]


def truth_of(manifest: Manifest) -> TruthTable | None:
    """Comparison of the rankings with annotated tiles; None if there is none."""
    truth = manifest.truth
    if truth is None:
        return None
    rows = tuple(
        (name, value, truth.average_precision.get(name)) for name, value in truth.precision8.items()
    )
    return TruthTable(truth.what, truth.n_slides, truth.chance, rows)


def _architecture(manifest: Manifest) -> str:
    backbone = manifest.backbone
    return f"{backbone.architecture} ({backbone.parameters:,} parameters)"


def _short(value: Any) -> str:
    if isinstance(value, str) and value.startswith(_FROM_FILE):
        return _FROM_FILE + PurePath(value).name
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} = {item}" for key, item in value.items()) or "none"
    return "none" if value is None else str(value)
