"""Fit cell: one selector on one trained classifier, as ``foci fit`` does it.

Where the budget is adaptive, the validation AUKC up to 32 tiles is measured, too: the paper reports
a validation AUKC and does not say up to which count.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from foci import selectors
from foci.audits.setup.preflight import for_backbone
from foci.audits.setup.splits import ready_to_fit
from foci.bags import Cohort
from foci.files.atomic import write_whole
from foci.progress import silent
from foci.reveal import Revealer
from foci.selectors.budgets import Adaptive
from foci.selectors.fitting import Target
from foci.selectors.fitting.criterion import aukc_on_grid
from foci.selectors.selector import FittedSelector
from foci.studies.cells.inputs import open_model
from foci.studies.plan.cells import Cell
from foci.studies.plan.expand import audit_settings
from foci.studies.plan.study import Study

SHORT = 32
VALIDATION = "validation.json"


def fit(study: Study, cell: Cell, model: Path, out: Path, device: str) -> None:
    """Fit a selector into a selector folder."""
    sources = open_model(study, cell, model, device)
    settings = audit_settings(study, cell)
    slides = for_backbone(sources.cohort, sources.backbone)
    cohort = ready_to_fit(slides, study.cohorts[cell.cohort].split_seed, silent)
    fitted = selectors.fit(
        sources.backbone,
        cohort,
        settings.plan,
        seed=cell.seed,
        target=settings.fitted_for,
        out=out,
        criterion=settings.choose_by,
        memory_gb=settings.memory_gb,
        model_files=sources.model_files,
    )
    if isinstance(settings.plan.budget, Adaptive):
        short = validation_aukc(fitted, cohort.split("val"), settings.fitted_for, SHORT)
        write_whole(out / VALIDATION, json.dumps({f"aukc_{SHORT}": short}))


def validation_aukc(fitted: FittedSelector, val: Cohort, target: Target, k_max: int) -> float:
    """Mean AUKC of the validation slides up to a count, over the grid that chooses the epoch.

    Args:
        fitted: The selector.
        val: The validation slides.
        target: The class followed: the label's, or the predicted one.
        k_max: Largest count.
    """
    revealer = Revealer(fitted.best.backbone, recheck=())
    areas = []
    for slide in val:
        bag = revealer.open(val.bag(slide.slide_id))
        followed = val.target(slide.slide_id) if target == "label" else int(bag.full().argmax())
        scores = fitted.scores(bag.tokens, followed)
        areas.append(aukc_on_grid(bag, scores, followed, k_max))
    return float(np.mean(areas))
