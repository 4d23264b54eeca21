"""A SLURM array job: one element per task or shard of tasks, and a job that follows it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

LOGS = "logs"
"""Folder for the output of the array's elements, in that of the results."""


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
    folder: Path,
    name: str,
    indices: Sequence[int],
    command: Sequence[str],
    reduce: Sequence[str],
    *,
    threads: int = 1,
    gpus: int = 0,
    at_once: int | None = None,
    options: Sequence[str] = (),
    complete: str | None = None,
) -> str:
    """Text of the batch script for ``sbatch``; the folder for its logs is made.

    The first element of the array gives SLURM the job that reduces the results; it starts when all
    elements have ended well.

    Args:
        folder: Of the results.
        name: Of the jobs, after ``foci-``.
        indices: One element each.
        command: Arguments of ``foci`` in every element, which gets ``--index`` too.
        reduce: Arguments of ``foci`` in the job that follows.
        threads: CPUs of every element.
        gpus: Of every element.
        at_once: Most elements at the same time.
        options: More of ``#SBATCH``, such as ``--partition=gpu``.
        complete: A shell test that the job which follows makes first: SLURM may start it after
            the array was cancelled.
    """
    path = folder.resolve()
    (path / LOGS).mkdir(parents=True, exist_ok=True)
    job = "foci-" + "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
    limit = "" if at_once is None else f"%{at_once}"
    foci = [sys.executable, "-m", "foci"]
    shared = " ".join(shlex.quote(one) for one in (f"--cpus-per-task={threads}", *options))
    log = shlex.quote(f"--output={path}/{LOGS}/reduce-%j.log")
    after = '--dependency=afterok:"$SLURM_ARRAY_JOB_ID" --kill-on-invalid-dep=yes'
    follow = shlex.join([*foci, *reduce])
    wrapped = follow
    if complete is not None:
        stop = "not everything is computed: print the job again and submit it"
        wrapped = f"{complete} || {{ echo {shlex.quote(stop)} >&2; exit 1; }}; exec {follow}"
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={job}",
        f"#SBATCH --array={array(indices)}{limit}",
        f"#SBATCH --cpus-per-task={threads}",
        *([f"#SBATCH --gres=gpu:{gpus}"] if gpus else []),
        f"#SBATCH --output={path}/{LOGS}/slurm-%A_%a.log",
        *(f"#SBATCH {option}" for option in options),
        f"export OMP_NUM_THREADS={threads} MKL_NUM_THREADS={threads}",
        f'if [ "$SLURM_ARRAY_TASK_ID" = {min(indices)} ]; then',
        f"  sbatch {after} --job-name={job}-reduce {shared} {log} \\",
        f"    --wrap={shlex.quote(wrapped)} \\",
        f"    || echo {shlex.quote(f'when all are done, run: {follow}')} >&2",
        "fi",
        f'exec {shlex.join([*foci, *command])} --index "$SLURM_ARRAY_TASK_ID"',
    ]
    return "\n".join(lines) + "\n"
