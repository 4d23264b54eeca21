"""Audits that take no time: a small classifier on a small cohort, with one short fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from foci import backbones
from foci.audits import StoredAudit
from foci.audits.folder import MANIFEST
from foci.audits.run import RunOptions, run
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.backbones import Backbone
from foci.configuration import configure
from foci.files.run_log import LOG
from tests.makers.cohorts import D_IN, read

SHORT = {"schedule.epochs": 1, "schedule.warmup": 0}

LEARNED = {**SHORT, "start": "random", "target": "label", "choose_by": "aukc"}
"""Of the default recipe: a head that learns on pooling classifiers, too, from the labels."""


def model(name: str = "abmil", n_classes: int = 2, seed: int = 0, **widths: int) -> Backbone:
    """With weights large enough that curves move and cross."""
    torch.manual_seed(seed)
    made = backbones.create(name, d_in=D_IN, n_classes=n_classes, d=16, hidden=8, **widths)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2.5)
    return made.requires_grad_(False).eval()


def settings(**changes: Any) -> AuditSettings:
    quick = {
        "recipe": "tuned", "recipe_settings": LEARNED, "seeds": (0,), "random_orders": 2,
        "block": 2, "k_max": 8,
        "deletion": (1, 2, 4), "kappa": 0.6, "n_boot": 20, "fit_target": "prediction",
    }  # fmt: skip
    if "profile" in changes:
        del quick["recipe"]  # the profile's own
    return configure(AuditSettings, {**quick, **changes})


def audit(
    folder: Path,
    out: str = "out",
    changes: dict[str, Any] | None = None,
    *,
    force: bool = False,
    workers: int = 1,
    **more: Any,
) -> StoredAudit:
    """Audit the cohort of a folder; ``more`` are fields of :class:`Sources`."""
    chosen = {"rankings": ("native", "selector", "random"), **(changes or {})}
    sources, options = Sources(model(), read(folder), **more), RunOptions(force, workers)
    return run(sources, settings(**chosen), folder / out, options)


def content(folder: Path) -> dict[str, Any]:
    """Every file but the log, byte for byte; of the manifest all but times and its hash."""
    found: dict[str, Any] = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (MANIFEST, LOG)
    }
    manifest = json.loads((folder / MANIFEST).read_text())
    times = {"started", "finished", "own_sha256"}
    return found | {MANIFEST: {k: v for k, v in manifest.items() if k not in times}}
