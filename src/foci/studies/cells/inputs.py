"""The cohort and the classifier that a cell works on."""

from __future__ import annotations

from pathlib import Path

from foci.audits.config import Inputs
from foci.audits.setup.inputs import Sources, open_sources
from foci.bags import Cohort
from foci.errors import ChangedError
from foci.studies.plan.cells import Cell
from foci.studies.plan.cohorts import data_digest, read_cohort
from foci.studies.plan.study import Study


def open_cohort(study: Study, cell: Cell) -> Cohort:
    """Read the table of a cell's cohort; no feature file is read.

    Raises:
        ChangedError: If rows or feature files are not those that the study was planned with.
    """
    cohort = read_cohort(study.cohorts[cell.cohort], cell.fold, cell.n_cap)
    _check(study, cell, cohort)
    return cohort


def open_model(study: Study, cell: Cell, model: Path, device: str) -> Sources:
    """Load the classifier of a cell, and read the table of its cohort.

    Raises:
        ChangedError: If rows or feature files are not those that the study was planned with.
    """
    entry, backbone = study.cohorts[cell.cohort], study.backbones[cell.backbone]
    own = {name: getattr(entry, name) for name in Inputs.model_fields if hasattr(entry, name)}
    fold = entry.fold if cell.fold is None else cell.fold
    ready_made = cell.seed in backbone.models.get(cell.cohort, {})
    options = backbone.model_options if ready_made else {}
    given = {**own, "fold": fold, "n_cap": cell.n_cap, "model": model, "model_options": options}
    sources = open_sources(Inputs(**given), device)
    _check(study, cell, sources.cohort)
    return sources


def _check(study: Study, cell: Cell, cohort: Cohort) -> None:
    if data_digest(cohort, study.cohorts[cell.cohort].split_seed) != cell.data:
        what = "was changed since the study was planned"
        raise ChangedError(f"cohort {cell.cohort}", what, "run foci study plan again")
