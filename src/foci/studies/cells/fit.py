"""Fit cell: one selector on one trained classifier, as ``foci fit`` does it."""

from __future__ import annotations

from pathlib import Path

from foci import selectors
from foci.audits.setup.preflight import for_backbone
from foci.audits.setup.splits import ready_to_fit
from foci.progress import silent
from foci.studies.cells.inputs import open_model
from foci.studies.plan.cells import Cell
from foci.studies.plan.expand import audit_settings
from foci.studies.plan.study import Study


def fit(study: Study, cell: Cell, model: Path, out: Path, device: str) -> None:
    """Fit a selector into a selector folder."""
    sources = open_model(study, cell, model, device)
    settings = audit_settings(study, cell)
    slides = for_backbone(sources.cohort, sources.backbone)
    selectors.fit(
        sources.backbone,
        ready_to_fit(slides, study.cohorts[cell.cohort].split_seed, silent),
        settings.plan,
        seed=cell.seed,
        target=settings.fitted_for,
        out=out,
        criterion=settings.choose_by,
        memory_gb=settings.memory_gb,
        model_files=sources.model_files,
    )
