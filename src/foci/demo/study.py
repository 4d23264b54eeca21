"""The paper's matrix in miniature: seven backbones, two tasks, two seeds, on synthetic slides."""

from __future__ import annotations

import os
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from foci.demo.folder import COHORT, FEATURES, make
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.studies.engine.progress import StudyProgress
from foci.studies.engine.schedule import Engine, InProcess, Tally, run_plan
from foci.studies.folder import STUDY, StudyFolder

SLIDES_OF_A_STUDY = 100
TASKS = {"two-types": 2, "three-types": 3}
"""Cohorts of the study, and their classes."""

_HEADER = """\
# The paper's study in miniature, on synthetic slides: narrow classifiers, few epochs, two seeds.
# It shows what a study is; nothing about the paper follows from its numbers.
"""

_NARROW: dict[str, dict[str, Any]] = {
    "transmil": {"d": 32, "heads": 4, "depth": 2, "hidden": 64, "head_hidden": 32, "dropout": 0.2},
    "acmil": {"d": 64, "hidden": 32},
    "abmil": {"d": 64, "hidden": 32, "head_hidden": 32},
    "clam-sb": {"d": 64, "hidden": 32, "head_hidden": 32},
    "attrimil": {"d": 64, "scorer_hidden": 32},
    "asmil": {"d": 64, "hidden": 32, "head_hidden": 32},
    "mhim-mil": {"d": 64, "hidden": 32, "head_hidden": 32},
}
_TRAINING: dict[str, dict[str, Any]] = {"transmil": {"lr": 1e-3, "weight_decay": 0.1}}


def miniature() -> dict[str, Any]:
    """Content of the demo's ``study.yaml``; cohorts lie beside it."""
    swept = {"backbones": ["transmil"], "cohorts": ["two-types"]}
    return {
        "format": 1,
        "name": "miniature",
        "profile": "paper",
        "seeds": [0, 1],
        "cohorts": {
            name: {"features": f"{name}/{FEATURES}", "labels": f"{name}/{COHORT}"} for name in TASKS
        },
        "backbones": {
            name: {
                "widths": widths,
                "training": {"epochs": 10, "lr": 5e-4, **_TRAINING.get(name, {})},
            }
            for name, widths in _NARROW.items()
        },
        "audit": {
            "recipe_settings": {"schedule.epochs": 6, "schedule.warmup": 1, "width": 64},
            "random_orders": 4,
            "n_boot": 200,
        },
        "sweeps": {
            "adaptive": {"recipes": ["paper-adaptive"], "backbones": ["transmil"]},
            "gate": {"recipes": ["paper-soft"], **swept},
            "losses": {"recipes": ["no-suff", "no-excl", "no-contig"], **swept},
            "freeze": {"recipes": ["freeze-only"], **swept},
            "n_cap": {"values": [64, 128], "backbones": ["transmil"], "cohorts": ["two-types"]},
            "joint": {"epochs": 2, "seeds": [0], **swept},
        },
        "efficiency": {"cohort": "two-types", "slides": 5, "repeats": 5},
    }


def make_study(out: str | Path, *, slides: int = SLIDES_OF_A_STUDY, seed: int = 0) -> StudyFolder:
    """Make the cohorts of both tasks and the ``study.yaml`` beside them.

    Args:
        out: Folder to make, or one with the same study.
        slides: Number of slides of each cohort.
        seed: Of the synthetic slides.
    """
    folder = Path(out)
    text = _HEADER + yaml.safe_dump(miniature(), sort_keys=False)
    path = folder / STUDY
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise FociError(folder, "holds another study", "choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, classes in TASKS.items():
        make(folder / name, seed=seed, slides=slides, classes=classes)
    write_whole(path, text)
    return StudyFolder(folder)


def run_miniature(folder: StudyFolder, *, workers: int | None = None) -> Tally:
    """Run the cells of the miniature study that are not done.

    Args:
        folder: Of :func:`make_study`.
        workers: Cells at the same time; None for one per core where Ray is installed, else 1.
    """
    possible = os.cpu_count() or 1 if find_spec("ray") is not None else 1
    workers = workers or possible
    plan = folder.new_plan()
    with ExitStack() as stack:
        engine: Engine = InProcess(folder)
        if workers > 1:
            from foci.studies.engine.ray_cluster import RayCluster

            engine = stack.enter_context(RayCluster(folder, workers=workers))
        report = stack.enter_context(StudyProgress(engine.slots))
        return run_plan(folder, plan, engine, report=report)
