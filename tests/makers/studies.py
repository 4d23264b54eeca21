"""Studies that take seconds: two tiny cohorts, narrow classifiers, fits of one epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from foci.studies.plan import StudyFolder
from tests.makers.cohorts import toy_cohort

NARROW: dict[str, dict[str, Any]] = {
    "abmil": {"widths": {"d": 16, "hidden": 8}, "training": {"epochs": 2, "lr": 5e-3}},
    "transmil": {
        "widths": {"d": 8, "heads": 2, "depth": 1, "hidden": 16, "head_hidden": 8},
        "training": {"epochs": 1},
    },
}


def values(*cohorts: str, **changes: Any) -> dict[str, Any]:
    """Content of a study.yaml whose cohorts lie beside it."""
    tables = {
        name: {"features": f"{name}/features", "labels": f"{name}/labels.csv"} for name in cohorts
    }
    return {
        "name": "tiny",
        "profile": "paper",
        "seeds": [1, 2],
        "cohorts": tables,
        "backbones": NARROW,
        "audit": {
            "recipe_settings": {"schedule.epochs": 1, "schedule.warmup": 0},
            "random_orders": 2,
            "k_max": 8,
            "deletion": [1, 2, 4],
            "kappa": 0.6,
            "n_boot": 20,
        },
        "sweeps": {},
        "efficiency": None,
        **changes,
    }


def make(folder: Path, *cohorts: str, **changes: Any) -> StudyFolder:
    """A study of tiny cohorts, in a folder."""
    names = cohorts or ("one", "two")
    for number, name in enumerate(names):
        if not (folder / name).exists():  # written again, a file is another file
            toy_cohort(folder / name, seed=number)
    (folder / "study.yaml").write_text(yaml.safe_dump(values(*names, **changes), sort_keys=False))
    return StudyFolder(folder)
