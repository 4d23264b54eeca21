"""Compute one cell of any kind into a folder."""

from __future__ import annotations

from pathlib import Path

from foci.errors import FociError
from foci.studies.cells.audit import audit
from foci.studies.cells.cost import cost
from foci.studies.cells.fit import fit
from foci.studies.cells.joint import joint
from foci.studies.cells.train import train
from foci.studies.folder import StudyFolder
from foci.studies.plan.cells import Cell


def compute(folder: StudyFolder, cell: Cell, needed: tuple[Path, ...], out: Path) -> None:
    """Compute a cell on a GPU if one is visible; the needed cells are finished.

    A folder that a killed process left behind is gone on with.

    Args:
        folder: The study.
        cell: What to compute.
        needed: Results of the cells that it needs: the model, then the selector if it has one.
        out: Folder to fill; may hold what a killed process has done.
    """
    study, device = folder.study, visible_device()
    if cell.kind == "train":
        train(study, cell, out, device)
        return
    model, selector = needed[0], needed[1] if len(needed) > 1 else None
    if cell.kind == "fit":
        fit(study, cell, model, out, device)
    elif cell.kind == "audit":
        audit(study, cell, model, selector, out, device)
    elif cell.kind == "joint":
        joint(study, cell, model, out, device)
    elif cell.kind == "cost":
        cost(study, cell, model, selector, out, device)
    else:
        raise FociError(cell.name, f"is of unknown kind {cell.kind!r}", "plan the study again")


def visible_device() -> str:
    """The first GPU that this process may use, else the CPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
