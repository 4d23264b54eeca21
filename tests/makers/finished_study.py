"""A finished study whose every curve is written down: four slides, two seeds, two cohorts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foci.selectors import recipe, vary
from foci.studies.plan import CELLS, Cell, StudyFolder
from tests.makers.folders import write_folder
from tests.makers.studies import make

TARGETS = [1, 1, 0, 1]
LABELS = ["tumour", "tumour", "benign", "benign"]
"""The model says tumour of the last slide and is wrong: it never reaches its label."""

Counts = list[int | None]

MAIN: dict[tuple[str, str, int], tuple[Counts, Counts]] = {
    ("nsclc", "transmil", 42): ([8, 4, 12], [2, 2, 5]),
    ("nsclc", "transmil", 43): ([6, 6, None], [1, 1, 1]),
    ("nsclc", "abmil", 42): ([1, 1, 1], [3, 3, 3]),
    ("brca", "transmil", 42): ([10, 10, 10], [5, 5, 5]),
    ("brca", "transmil", 43): ([20, 20, 40], [5, 5, 5]),
    ("brca", "abmil", 42): ([2, 2, 2], [2, 2, 2]),
    ("brca", "abmil", 43): ([2, 2, 2], [2, 2, 2]),
}
"""MSK of the first three slides under the native ranking and under the selector."""

RANDOM: dict[int, list[Counts]] = {42: [[16, 16, 16], [32, 32, 32]], 43: [[8, 8, 8], [8, 8, 8]]}
VARIANTS: dict[str, Counts] = {
    "n_cap": [4, 4, 4],
    "paper-adaptive": [3, 3, 3],
    "paper-soft": [9, 9, 9],
    "no-suff": [1, None, None],
    "freeze-only": [7, 7, 7],
}
LAST = {"native": 40, "selector": 1, "random": 1}
"""MSK of the prediction of the last slide."""

DROPS = {"native": 0.1, "selector": 0.3, "random": 0.0}
SCORES = {"main": 0.5, "paper-adaptive": 0.8, "alpha.alpha=0.05": 0.9}
FAILED = ("nsclc", "abmil", 43)

SWEEPS: dict[str, Any] = {
    "adaptive": {"recipes": ["paper-adaptive"], "backbones": ["transmil"]},
    "alpha": {
        "recipe": "paper-adaptive", "vary": {"budget.alpha": [0.05]}, "seeds": [42],
        "audit": False, "backbones": ["transmil"], "cohorts": ["nsclc"],
    },
    "gate": {"recipes": ["paper-soft"], "backbones": ["transmil"], "cohorts": ["nsclc"]},
    "losses": {"recipes": ["no-suff"], "backbones": ["transmil"], "cohorts": ["nsclc"]},
    "freeze": {"recipes": ["freeze-only"], "backbones": ["transmil"], "cohorts": ["nsclc"]},
    "n_cap": {"values": [256], "refit": False, "backbones": ["transmil"], "cohorts": ["nsclc"]},
    "joint": {
        "epochs": 2, "seeds": [42], "backbones": ["transmil"], "cohorts": ["nsclc"],
    },
}  # fmt: skip

COST = {
    "device": "cpu", "machine": "x86_64", "threads": 1, "slides": ["s0"], "n_tiles": [500],
    "k_max": 256, "repeats": 9,
    "native": {
        "parameters": 490_000, "inference_ms": 2.0, "inference_mb": 100.0, "srp_ms": 50.0,
        "srp_mb": 300.0, "ratio": 25.0,
    },
    "selector": {
        "parameters": 622_609, "inference_ms": 2.5, "inference_mb": None, "srp_ms": 55.0,
        "srp_mb": 300.0, "ratio": 22.0,
    },
}  # fmt: skip


def finished(folder: Path, **changes: Any) -> StudyFolder:
    """The study with all its results, one failed training, and nothing that was computed."""
    plan: dict[str, Any] = {
        "seeds": [42, 43],
        "audit": {"random_orders": 2, "n_boot": 20},
        "read": {"kappas": [0.55, 0.9], "selected_k": [8, 16, 32]},
        "sweeps": SWEEPS,
        "efficiency": {},
        "published": True,
    }
    study = make(folder, "nsclc", "brca", **{**plan, **changes})
    for cell in study.plan():
        place = (cell.cohort, cell.backbone, cell.seed)
        if place == FAILED:
            if cell.kind == "train":
                study.write_record(cell, error="the loss is not finite; lower the rate")
            continue
        result = folder / CELLS / cell.key
        if cell.kind == "audit":
            _audit(result, cell)
        else:
            result.mkdir(parents=True, exist_ok=True)
            name, content = _content(cell)
            (result / name).write_text(json.dumps(content))
            if cell.variant == "paper-adaptive":
                area = content["history"][0]["score"] - 0.25
                (result / "validation.json").write_text(json.dumps({"aukc_32": area}))
    return study


def _audit(folder: Path, cell: Cell) -> None:
    native, selector = MAIN[cell.cohort, cell.backbone, cell.seed]
    if cell.variant == "main":
        counts = {
            "native": [[*native, LAST["native"]]],
            "selector": [[*selector, LAST["selector"]]],
            "random": [[*order, LAST["random"]] for order in RANDOM[cell.seed]],
        }
    else:
        counts = {"selector": [[*VARIANTS[cell.variant], LAST["selector"]]]}
    settings = {"recipe": cell.recipe, "deletion": (16, 32, 64, 128, 256)}
    write_folder(
        folder, counts, ["P0", "P1", "P2", "P3"], LABELS, targets=TARGETS, drops=DROPS,
        change=settings, name=cell.name,
    )  # fmt: skip


def _content(cell: Cell) -> tuple[str, dict[str, Any]]:
    if cell.kind == "train":
        return "backbone.json", {"metrics": {"test": {"auc": 0.75}}}
    if cell.kind == "joint":
        before, after = {"auc": 0.9}, [{"auc": 0.8}, {"auc": 0.7}]
        return "result.json", {"before": before, "epochs": after}
    if cell.kind == "cost":
        return "result.json", COST
    return "selector.json", _selector(cell)


def _selector(cell: Cell) -> dict[str, Any]:
    score = SCORES.get(cell.variant, 0.6) + (0.1 if cell.seed == 43 else 0.0)
    epoch = {
        "epochs": 2, "rate": 1e-4, "loss": 1.0, "terms": {}, "val_loss": 1.0, "val_terms": {},
    }  # fmt: skip
    history = [
        {**epoch, "epoch": 1, "score": score, "best": True},
        {**epoch, "epoch": 2, "score": 0.1, "best": False},
    ]
    chosen = vary(recipe(cell.recipe), cell.recipe_settings)
    return {
        "format": 1,
        "backbone": {"architecture": "abmil", "fingerprint": "f", "probe": [0.0, 0.0]},
        "head": {"d": 16, "outputs": 1, "hidden": 256, "columns": 0},
        "fingerprint": "b",
        "recipe": chosen.model_dump(mode="json"),
        "seed": cell.seed,
        "target": "label",
        "site": "feature",
        "best_epoch": 1,
        "history": history,
    }
