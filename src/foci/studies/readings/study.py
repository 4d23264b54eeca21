"""Read the finished cells of a study folder, one audit at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from foci.audits import StoredAudit
from foci.backbones.saved import FACTS
from foci.errors import FociError
from foci.files.bounded import read_json
from foci.selectors import recipe, vary
from foci.selectors.budgets import Adaptive
from foci.selectors.metadata import read_metadata
from foci.selectors.saved import METADATA
from foci.studies.cells.cost import CostResult
from foci.studies.cells.fit import SHORT, VALIDATION
from foci.studies.cells.joint import JointResult
from foci.studies.folder import StudyFolder
from foci.studies.plan.cells import N_CAP, Cell, Plan
from foci.studies.plan.study import Study
from foci.studies.readings.audit import Reading, Wanted, read_audit
from foci.studies.readings.measures import Place
from foci.studies.readings.numbers import StudyNumbers

T = TypeVar("T")


def read_numbers(folder: StudyFolder) -> StudyNumbers:
    """Read every finished cell; one that is not finished, failed or is damaged says so instead."""
    study, plan = folder.study, folder.plan()
    wanted = wanted_by(study)

    def collected(kind: str, read: Callable[[Path], T]) -> dict[Place, dict[str, T | str]]:
        found: dict[Place, dict[str, T | str]] = {}
        for cell in plan.select(kind=kind):
            found.setdefault(place_of(cell), {})[seed_of(cell)] = _read(folder, plan, cell, read)
        return found

    costs = {
        cell.backbone: _read(folder, plan, cell, CostResult.read)
        for cell in plan.select(kind="cost")
    }
    return StudyNumbers(
        cohorts=tuple(study.cohorts),
        backbones={name: entry.family for name, entry in study.backbones.items()},
        audits=collected("audit", lambda path: read_audit(StoredAudit.load(path), wanted)),
        spread=study.std,
        validation=collected("fit", read_validation),
        short_validation=collected("fit", read_short_validation),
        adaptive=_adaptive(plan),
        trained=collected("train", read_trained),
        joint=collected("joint", read_joint),
        costs=costs,
    )


def wanted_by(study: Study) -> Wanted:
    """The ``read`` block of a study."""
    block = study.read
    return Wanted(
        block.kappas, block.budgets, block.selected_k, block.adaptive.alpha, block.adaptive.k_min
    )


def place_of(cell: Cell) -> Place:
    """Where a cell belongs; cells that differ in seed or fold share a place."""
    cap = cell.n_cap if cell.variant == N_CAP else None
    return Place(cell.cohort, cell.backbone, cell.variant, cap)


def seed_of(cell: Cell) -> str:
    """Seed of a cell, with its fold where there are folds.

    >>> seed_of(Cell("audit", "nsclc", "abmil", 42, "main", 1024, (), "k", fold=3))
    '42 fold 3'
    """
    return str(cell.seed) if cell.fold is None else f"{cell.seed} fold {cell.fold}"


def _read(folder: StudyFolder, plan: Plan, cell: Cell, read: Callable[[Path], T]) -> T | str:
    """What a cell has left, or why there is nothing."""
    path = folder.result(cell)
    if path is None:
        return _why(folder, plan, cell)
    try:
        return read(path)
    except (FociError, OSError, ValueError, KeyError) as error:
        return f"cannot be read: {error}"


def _why(folder: StudyFolder, plan: Plan, cell: Cell) -> str:
    """Why a cell has no result: it failed, one that it needs failed, or it was not run."""
    error = folder.failure(cell)
    if error is not None:
        return f"{cell.kind} failed: {error}"
    for needed in plan.needs(cell):
        error = folder.failure(needed)
        if error is not None:
            return f"{needed.kind} failed: {error}"
    return "not run yet"


def read_validation(path: Path) -> Reading:
    """Score of the epoch that was kept, on the validation slides."""
    metadata = read_metadata(path / METADATA)
    return metadata.history[metadata.best_epoch - 1].score


def read_short_validation(path: Path) -> Reading:
    """AUKC up to 32 tiles on the validation slides, of a selector with an adaptive budget."""
    if not (path / VALIDATION).is_file():
        return "not measured when the selector was fitted"
    return float(read_json(path / VALIDATION)[f"aukc_{SHORT}"])


def read_trained(path: Path) -> Reading:
    """AUC on the test slides as noted when the classifier was trained."""
    if not path.is_dir():
        return "a checkpoint of another program"
    metrics = json.loads((path / FACTS).read_text(encoding="utf-8")).get("metrics", {})
    auc = metrics.get("test", {}).get("auc")
    return "no AUC was noted when it was trained" if auc is None else float(auc)


def read_joint(path: Path) -> tuple[float, ...]:
    """AUC on the validation slides: of the frozen classifier, then after every epoch."""
    result = JointResult.read(path)
    found = [scores["auc"] for scores in (result.before, *result.epochs)]
    if any(auc is None for auc in found):
        raise FociError(path, "has no AUC: a class has no validation slide", "check the split")
    return tuple(auc for auc in found if auc is not None)


def _adaptive(plan: Plan) -> dict[str, tuple[float, int]]:
    """Share and smallest count of every variant whose selector has an adaptive budget."""
    found = {}
    for cell in plan.select(kind="fit"):
        budget = vary(recipe(cell.recipe), cell.recipe_settings).budget
        if isinstance(budget, Adaptive):
            found[cell.variant] = (budget.alpha, budget.k_min)
    return found


def audit_folders(folder: StudyFolder) -> dict[Place, dict[str, Path]]:
    """Folders of finished audits, by place and seed."""
    found: dict[Place, dict[str, Path]] = {}
    for cell in folder.plan().select(kind="audit"):
        path = folder.result(cell)
        if path is not None:
            found.setdefault(place_of(cell), {})[seed_of(cell)] = path
    return found
