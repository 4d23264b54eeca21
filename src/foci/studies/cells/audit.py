"""Audit cell: one trained classifier with the selector of a fit cell, as ``foci audit`` does it."""

from __future__ import annotations

from pathlib import Path

from foci.audits.run import run
from foci.studies.cells.inputs import open_model
from foci.studies.plan.cells import Cell
from foci.studies.plan.expand import audit_settings
from foci.studies.plan.study import Study


def audit(
    study: Study, cell: Cell, model: Path, selector: Path | None, out: Path, device: str
) -> None:
    """Audit a classifier into an audit folder."""
    sources = open_model(study, cell, model, device)
    run(
        sources.backbone,
        sources.cohort,
        audit_settings(study, cell),
        out,
        name=cell.name.removeprefix("audit/"),
        split_seed=study.cohorts[cell.cohort].split_seed,
        model_notes=sources.model_notes,
        trained_on=sources.trained_on,
        record=sources.record,
        alarms=sources.alarms,
        selectors=() if selector is None else (selector,),
        model_files=sources.model_files,
    )
