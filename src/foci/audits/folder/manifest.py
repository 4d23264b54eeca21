"""The record of an audit: what was asked, of what, by which software, and what came out."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foci._version import __version__
from foci.atomic import write_whole
from foci.audits.folder.names import (
    CURVES,
    FORMAT,
    MANIFEST,
    RANKINGS,
    SELECTORS,
    SLIDES,
    SUMMARY,
    TABLES,
)
from foci.audits.settings import AuditSettings
from foci.audits.setup.selectors import FILES as SELECTOR_FILES
from foci.backbones import Backbone, fingerprint
from foci.backbones.freezing import home
from foci.digest import digest


def versions_of(backbone: Backbone) -> dict[str, str]:
    """What else may move the last digits: a run that was begun with one goes on with the same."""
    return {
        "foci": __version__,
        "torch": torch.__version__,
        "device": home(backbone)[0].type,
    }


def opening(
    backbone: Backbone,
    settings: AuditSettings,
    decided: Mapping[str, Any],
    *,
    name: str,
    classes: Iterable[str],
    sources: Mapping[str, str],
    model_notes: Iterable[str],
) -> dict[str, Any]:
    """What is known before the first number."""
    return {
        "format": FORMAT,
        "status": "running",
        "key": digest(decided),
        "name": name,
        "settings": settings.model_dump(mode="json"),
        "sources": dict(sources),
        "backbone": {
            "architecture": backbone.architecture,
            "parameters": sum(p.numel() for p in backbone.parameters()),
            "fingerprint": fingerprint(backbone),
            "score": backbone.capabilities.score,
            "notes": list(model_notes),
        },
        "classes": list(classes),
        "split": settings.split,
        "decided_by": dict(decided),
        "versions": {
            **versions_of(backbone),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "started": now(),
        "finished": None,
    }


def now() -> str:
    """The time, in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a folder."""
    found: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return found


def write(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    write_whole(folder / MANIFEST, text)


def file_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file with numbers in it, by its name in the folder."""
    paths = [folder / name for name in (SLIDES, CURVES, RANKINGS, SUMMARY)]
    paths += sorted((folder / TABLES).glob("*.csv"))
    paths += sorted(
        path for name in SELECTOR_FILES for path in (folder / SELECTORS).glob(f"seed-*/{name}")
    )
    return {path.relative_to(folder).as_posix(): _hash(path) for path in paths}


def _hash(path: Path) -> str:
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            sha.update(chunk)
    return sha.hexdigest()
