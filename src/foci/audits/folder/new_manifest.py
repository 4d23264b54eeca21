"""Manifest of a new run, and the hashes of the files that a run has written."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foci._version import __version__
from foci.audits.folder.agreement import AgreementRecord
from foci.audits.folder.manifest import BackboneRecord, Manifest, now
from foci.audits.folder.names import (
    CURVES,
    FORMAT,
    RANKINGS,
    SELECTORS,
    SLIDES,
    SUMMARY,
    TABLE_FILES,
    TABLES,
)
from foci.audits.folder.run_key import MAP_FILES
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone, fingerprint
from foci.backbones.checkpoints import Agreement
from foci.backbones.freezing import home
from foci.bags.cohort.patient_overlap import PatientOverlap
from foci.files.digest import digest, file_digest
from foci.selectors.saved import RESULT


def versions_of(backbone: Backbone) -> dict[str, str]:
    """Versions of foci and torch, and the device; a run resumes only with the same ones."""
    return {
        "foci": __version__,
        "torch": torch.__version__,
        "device": home(backbone)[0].type,
    }


def new_manifest(
    backbone: Backbone,
    settings: AuditSettings,
    inputs: Mapping[str, Any],
    *,
    name: str,
    classes: Iterable[str],
    sources: Mapping[str, str],
    model_notes: Iterable[str],
    overlapping_patients: PatientOverlap,
    agreement: Agreement | None = None,
) -> Manifest:
    """Manifest of a new run, before it has any results."""
    agreed = {} if agreement is None else {"agreement": AgreementRecord.of(agreement)}
    return Manifest(
        format=FORMAT,
        status="running",
        key=digest(inputs),
        name=name,
        settings=settings,
        sources=dict(sources),
        backbone=BackboneRecord(
            architecture=backbone.architecture,
            parameters=sum(p.numel() for p in backbone.parameters()),
            fingerprint=fingerprint(backbone),
            score=backbone.capabilities.score,
            notes=list(model_notes),
            **agreed,
        ),
        classes=list(classes),
        split=settings.split,
        run_inputs=dict(inputs),
        versions={
            **versions_of(backbone),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        started=now(),
        finished=None,
        maps=inputs.get(MAP_FILES, {}),
        overlapping_patients=dict(overlapping_patients),
    )


def file_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file that holds numbers or weights, by its path in the folder."""
    paths = [folder / name for name in (SLIDES, CURVES, RANKINGS, SUMMARY)]
    paths += [folder / TABLES / name for name in sorted(TABLE_FILES)]
    paths += sorted(path for name in RESULT for path in (folder / SELECTORS).glob(f"seed-*/{name}"))
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}
