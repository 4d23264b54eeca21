"""Audits that take no time: a small cohort, a small classifier, one short fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foci import Cohort, backbones
from foci.audits import StoredAudit
from foci.audits.folder.names import MANIFEST
from foci.audits.run import run
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone
from foci.configuration import configure
from tests.bags import feature_files as write

D_IN, N_CAP = 8, 9
SHORT = {"schedule.epochs": 1, "schedule.warmup": 0}
TEST_TILES = (5, 1, 12, 7, 8)
"""Tiles of the audited slides; one has a single tile, one more than the cap."""


def make_files(folder: Path, splits: str = "train val test", d_in: int = D_IN) -> Path:
    """Features and ``labels.csv``: 6 slides of train, 3 of val, 5 of test, two of one patient."""
    rng = np.random.default_rng(3)
    sizes = {"train": (4, 6, 5, 9, 4, 6), "val": (5, 7, 6), "test": TEST_TILES}
    rows = ["slide_id,case_id,label,split"]
    number = 0
    for split, tiles in sizes.items():
        for n in tiles:
            x = rng.normal(size=(n, d_in)).astype(np.float32)
            x[0, number % 2] += 4
            write.trident(folder / "features" / f"s{number:02d}.h5", x, write.grid(n))
            shown = split if split in splits.split() else ""
            rows.append(f"s{number:02d},c{min(number, 12)},{'ab'[number % 2]},{shown}")
            number += 1
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return folder


def read(folder: Path, *, labels: bool = True, **more: Any) -> Cohort:
    table = folder / "labels.csv" if labels else None
    return Cohort.read(folder / "features", table, n_cap=N_CAP, cache=False, **more)


def model(name: str = "abmil", n_classes: int = 2, seed: int = 0) -> Backbone:
    """With weights large enough that curves move and cross."""
    torch.manual_seed(seed)
    made = backbones.create(name, d_in=D_IN, n_classes=n_classes, d=16, hidden=8)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2.5)
    return made.requires_grad_(False).eval()


def settings(**changes: Any) -> AuditSettings:
    quick = {
        "recipe_settings": SHORT, "seeds": (0,), "random_orders": 2, "block": 2, "k_max": 8,
        "deletion": (1, 2, 4), "kappa": 0.6, "n_boot": 20,
    }  # fmt: skip
    return configure(AuditSettings, {**quick, **changes})


def audit(
    folder: Path, out: str = "out", changes: dict[str, Any] | None = None, **more: Any
) -> StoredAudit:
    return run(model(), read(folder), settings(**(changes or {})), folder / out, **more)


def content(folder: Path) -> dict[str, Any]:
    """Every file byte for byte; of the manifest everything but the times."""
    found: dict[str, Any] = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }
    manifest = json.loads((folder / MANIFEST).read_text())
    times = {"started", "finished"}
    return found | {MANIFEST: {k: v for k, v in manifest.items() if k not in times}}
