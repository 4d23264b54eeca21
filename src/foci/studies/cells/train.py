"""Train cell: one backbone on one cohort with one seed, as ``foci train`` does it."""

from __future__ import annotations

from pathlib import Path

from foci.audits.analysis.selected_only import split_scores
from foci.backbones.training.run import train_into, trainable, with_train_and_val
from foci.studies.cells.inputs import open_cohort
from foci.studies.plan.cells import Cell
from foci.studies.plan.expand import training_settings
from foci.studies.plan.study import Study


def train(study: Study, cell: Cell, out: Path, device: str) -> None:
    """Train a classifier into a model folder."""
    entry = study.backbones[cell.backbone]
    split_seed = study.cohorts[cell.cohort].split_seed
    cohort = trainable(with_train_and_val(open_cohort(study, cell).readable(), split_seed))
    recipe = training_settings(study, cell.cohort, cell.backbone, cohort.classes, cell.seed)
    train_into(
        out,
        entry.architecture or cell.backbone,
        cohort,
        recipe,
        preset=entry.preset,
        widths=entry.widths,
        device=device,
        score=split_scores,
    )
