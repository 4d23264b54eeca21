"""What is known of an audit beside its numbers, as pairs of name and value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foci.audits.settings import AuditSettings
from foci.plural import counted
from foci.reports.text.wording import fixed, percent

Facts = list[tuple[str, str]]
Manifest = Mapping[str, Any]


def audit_facts(manifest: Manifest, summary: Mapping[str, Any]) -> Facts:
    """The line under the title."""
    n = summary["n_skipped"]
    skipped = f", {n} skipped in the whole cohort" if n else ""
    patients = counted(summary["n_cases"], "patient")
    full = summary["full_bag"]
    facts = [
        ("classifier", _architecture(manifest)),
        ("slides", f"{summary['n_slides']} of {patients}{skipped}"),
        ("split", str(manifest.get("split", ""))),
        ("classes", ", ".join(summary["classes"])),
        ("AUC", fixed(full["auc"]) if full["auc"] is not None else ""),
        ("accuracy", percent(full["accuracy"]) if full["accuracy"] is not None else ""),
        ("confidence κ", f"{summary['kappa']:g}"),
        ("at most", counted(summary["k_max"], "tile")),
    ]
    return [(name, value) for name, value in facts if value]


def settings_of(settings: AuditSettings) -> Facts:
    """Every setting that the page was written with."""
    return [(name, _short(value)) for name, value in settings.model_dump(mode="json").items()]


def record_of(manifest: Manifest) -> Facts:
    """Where everything came from, with the hashes that prove it."""
    backbone = manifest.get("backbone", {})
    facts = [
        ("audit key", manifest.get("key")),
        ("started", manifest.get("started")),
        ("finished", manifest.get("finished")),
        ("weights", backbone.get("fingerprint")),
        ("features", manifest.get("features_sha256")),
    ]
    facts += [(f"source: {name}", value) for name, value in manifest.get("sources", {}).items()]
    facts += [
        (f"selector, seed {s['seed']}", f"{s['recipe']}, gate at {s['site']}, epoch "
         f"{s['best_epoch']}, weights {s['weights_sha256']}")
        for s in manifest.get("selectors", [])
    ]  # fmt: skip
    facts += [(f"slides: {name}", count) for name, count in manifest.get("slides", {}).items()]
    facts += [(f"version: {name}", value) for name, value in manifest.get("versions", {}).items()]
    facts += [(f"SHA-256: {name}", value) for name, value in manifest.get("files", {}).items()]
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


def truth_of(manifest: Manifest) -> Mapping[str, Any] | None:
    """Rankings against tiles that somebody has marked, if the audit has been compared."""
    truth: Mapping[str, Any] | None = manifest.get("truth")
    if truth is None:
        return None
    return {
        "what": truth["what"],
        "n_slides": truth["n_slides"],
        "chance": truth.get("chance"),
        "rows": [
            (name, value, truth["average_precision"].get(name))
            for name, value in truth["precision8"].items()
        ],
    }


def _architecture(manifest: Manifest) -> str:
    backbone = manifest.get("backbone", {})
    size = backbone.get("parameters")
    parameters = "" if size is None else f" ({size:,} parameters)"
    return f"{backbone.get('architecture', 'unknown')}{parameters}"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} = {item}" for key, item in value.items()) or "none"
    return "every count" if value is None else str(value)
