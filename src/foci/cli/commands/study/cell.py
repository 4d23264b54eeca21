"""``foci study cell``."""

from __future__ import annotations

from typing import Annotated

import typer

from foci.cli.announce import say, starting
from foci.cli.commands.study.arguments import Study, Threads, limit_threads


def cell(
    study: Study,
    index: Annotated[int, typer.Option(help="Number of the cell, as in foci study plan --cells.")],
    threads: Threads = 1,
    plan: Annotated[
        str | None, typer.Option(help="Digest of the plan that the number belongs to.")
    ] = None,
) -> None:
    """Run one cell, and those that it needs if nobody has: a task of a SLURM array."""
    starting("reading the study")
    limit_threads(threads)
    from foci.progress import duration
    from foci.studies.engine.slurm import cell_at, run_with_needs
    from foci.studies.folder import StudyFolder

    folder = StudyFolder(study)
    planned = folder.plan()
    chosen = cell_at(planned, index, plan)
    outcome = run_with_needs(folder, planned, chosen, threads=threads)
    if outcome.error is not None:
        say(f"{chosen.name}: FAILED: {outcome.error}")
        raise typer.Exit(1)
    say(f"{chosen.name}: {duration(outcome.seconds)}")
