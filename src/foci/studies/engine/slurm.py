"""A SLURM array job: one task per unfinished cell, without Ray."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from foci.errors import FociError
from foci.studies.engine.work import Outcome, run_cell
from foci.studies.plan import Cell, Plan, StudyFolder


def array(indices: Sequence[int]) -> str:
    """Indices as SLURM writes them.

    >>> array([0, 1, 2, 5, 7, 8])
    '0-2,5,7-8'
    """
    runs: list[list[int]] = []
    for index in sorted(indices):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def script(
    folder: StudyFolder,
    plan: Plan,
    *,
    threads: int = 1,
    gpus: int = 0,
    at_once: int | None = None,
    options: Sequence[str] = (),
) -> str:
    """Text of the batch script for ``sbatch``.

    Cells that others need have lower numbers, so that SLURM starts with them. A task whose needs
    are not finished waits for the tasks that compute them, and computes what nobody does. A task
    has so many threads and GPUs; ``options`` are more of ``#SBATCH``, such as ``--partition=gpu``.

    Raises:
        FociError: If nothing is left to do.
    """
    left = [i for i, cell in enumerate(plan.cells) if folder.result(cell) is None]
    if not left:
        raise FociError(folder.path, "has no cell left to run", "run foci study tables")
    path = folder.path.resolve()
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in folder.study.name)
    limit = "" if at_once is None else f"%{at_once}"
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name=foci-{name}",
        f"#SBATCH --array={array(left)}{limit}",
        f"#SBATCH --cpus-per-task={threads}",
        *([f"#SBATCH --gres=gpu:{gpus}"] if gpus else []),
        f"#SBATCH --output={path}/slurm-%A_%a.log",
        *(f"#SBATCH {option}" for option in options),
        f"export OMP_NUM_THREADS={threads} MKL_NUM_THREADS={threads}",
        f"exec {shlex.quote(sys.executable)} -m foci study cell {shlex.quote(str(path))} \\",
        f'  --index "$SLURM_ARRAY_TASK_ID" --threads {threads} --plan {plan.digest[:12]}',
    ]
    return "\n".join(lines) + "\n"


def run_with_needs(folder: StudyFolder, plan: Plan, cell: Cell, *, threads: int = 1) -> Outcome:
    """Run a cell after the cells that it needs; all that are finished are left alone."""
    for needed in plan.needs(cell):
        outcome = run_cell(folder, needed, threads=threads)
        if outcome.error is not None:
            why = f"skipped: {needed.name} failed ({outcome.error})"
            return Outcome(cell.key, error=why)
    return run_cell(folder, cell, threads=threads)


def cell_at(plan: Plan, index: int, expected: str | None) -> Cell:
    """The cell with a number, if the plan is the one that the number was given for."""
    if expected is not None and not plan.digest.startswith(expected):
        what = "was made for another plan: study.yaml or a cohort was changed"
        raise FociError(f"--plan {expected}", what, "write the job again with foci study slurm")
    if not 0 <= index < len(plan):
        what = f"is not between 0 and {len(plan) - 1}"
        raise FociError(f"--index {index}", what, "see foci study plan --cells")
    return plan.cells[index]
