"""``foci study run``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from foci.cli.announce import MANY_SKIPPED_CODE, say, starting
from foci.cli.commands.study.arguments import Study, Threads, limit_threads
from foci.errors import FociError

if TYPE_CHECKING:
    from foci.studies.engine.schedule import Engine, Tally
    from foci.studies.folder import StudyFolder
    from foci.studies.plan.cells import Kind


def run(
    study: Study,
    workers: Annotated[
        int, typer.Option(min=1, help="Cells at the same time on this machine; 1 needs no Ray.")
    ] = 1,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster to join instead: auto, or HOST:PORT.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Kinds of cells, with commas: train,fit,audit,joint,cost.")
    ] = None,
    gpus_per_cell: Annotated[
        float | None,
        typer.Option(min=0.0, help="Share of a GPU per cell, on Ray; default shares all."),
    ] = None,
    threads: Threads = 1,
) -> None:
    """Run the cells that are not done; the same command goes on after an interruption.

    A failed cell is listed and stops only the cells that need it.
    """
    starting("planning the study")
    limit_threads(threads)
    from foci.studies.folder import StudyFolder

    kinds = _kinds(only)
    folder = StudyFolder(study)
    try:
        with contextlib.ExitStack() as stack:
            tally = _run(folder, kinds, stack, workers, address, gpus_per_cell, threads)
    except KeyboardInterrupt:
        typer.echo("foci: stopped; give the same command again to go on", err=True)
        raise typer.Exit(130) from None
    failed, skipped = len(tally.failed), len(tally.skipped)
    say(f"{tally.done} of {tally.total} cells done, {failed} failed, {skipped} skipped")
    if failed or skipped:
        say(f"see foci study status {study}")
        raise typer.Exit(MANY_SKIPPED_CODE)


def _run(
    folder: StudyFolder,
    kinds: tuple[Kind, ...],
    stack: contextlib.ExitStack,
    workers: int,
    address: str | None,
    gpus: float | None,
    threads: int,
) -> Tally:
    from foci.studies.engine.in_process import InProcess
    from foci.studies.engine.progress import StudyProgress
    from foci.studies.engine.schedule import run_plan

    plan = folder.new_plan()
    engine: Engine
    if workers == 1 and address is None:
        if gpus is not None:
            what = "needs Ray"
            raise FociError("--gpus-per-cell", what, "give --workers 2 or more, or --address")
        engine = InProcess(folder, threads)
    else:
        from foci.studies.engine.ray_cluster import RayCluster

        own = None if address is not None else workers
        engine = stack.enter_context(
            RayCluster(folder, workers=own, address=address, threads=threads, gpus=gpus)
        )
    progress = stack.enter_context(StudyProgress(engine.slots, say))
    return run_plan(folder, plan, engine, only=kinds, report=progress)


def _kinds(only: str | None) -> tuple[Kind, ...]:
    from foci.studies.plan.cells import KINDS

    if only is None:
        return KINDS
    wanted = only.split(",")
    for name in wanted:
        if name not in KINDS:
            raise FociError(f"--only {name}", "is no kind of cell", f"choose of {','.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in wanted)
