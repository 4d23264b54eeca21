"""``foci study slurm``."""

from __future__ import annotations

from typing import Annotated

import typer

from foci.cli.announce import starting
from foci.cli.commands.study.arguments import Study, Threads


def slurm(
    study: Study,
    threads: Threads = 1,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs of every task.")] = 0,
    at_once: Annotated[
        int | None, typer.Option(min=1, help="Most tasks at the same time; default no limit.")
    ] = None,
    option: Annotated[
        list[str], typer.Option(help="Another #SBATCH option: --option=--partition=gpu.")
    ] = [],  # noqa: B006
) -> None:
    """Print a SLURM array job with one task per cell that is not done: foci study slurm S > job.

    Give it to sbatch; each task is foci study cell. After a loss, print and give it again.
    """
    starting("reading the study")
    from foci.studies.engine.slurm import script
    from foci.studies.folder import StudyFolder

    folder = StudyFolder(study)
    text = script(
        folder, folder.new_plan(), threads=threads, gpus=gpus, at_once=at_once, options=option
    )
    typer.echo(text, nl=False)
