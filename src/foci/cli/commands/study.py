"""``foci study``: the paper's whole matrix from one file."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foci.cli.options import FociTyper
from foci.cli.terminal import MANY_SKIPPED_CODE, resumable, say, say_study_page, starting
from foci.errors import FociError
from foci.progress import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foci.engines.base import Engine
    from foci.studies.plan import Cell, Kind, Plan, StudyFolder
    from foci.studies.run import Estimates

Study = Annotated[Path, typer.Argument(help="Folder with a study.yaml.")]
Threads = Annotated[
    int,
    typer.Option(
        min=1, help="Threads of every cell; the same number gives the same bytes everywhere."
    ),
]


def _opened(study: Path) -> StudyFolder:
    from foci.studies.plan import StudyFolder

    return StudyFolder(study)


def new(
    out: Annotated[Path, typer.Argument(help="Folder for the study.")],
    profile: Annotated[
        str, typer.Option(help="paper: its seven backbones, sweeps and tables; or foci.")
    ] = "paper",
) -> None:
    """Write a commented study.yaml to start from."""
    starting("writing a study")
    from foci.files.atomic import write_whole
    from foci.studies.plan import STUDY
    from foci.studies.study import template

    text = template(out.resolve().name, profile)
    path = out / STUDY
    if path.exists():
        raise FociError(path, "exists", "edit it, or choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    typer.echo(f"wrote {path}: name your cohorts there, then run foci study plan {out}")


def plan(
    study: Study,
    cells: Annotated[bool, typer.Option("--cells", help="List every cell.")] = False,
) -> None:
    """Show which cells a study has, which are done, and how long the others will take."""
    starting("reading the cohorts")
    folder = _opened(study)
    planned = folder.new_plan()
    for note in planned.notes:
        say(f"note: {note}")
    _show(folder, planned)
    if cells:
        for index, cell in enumerate(planned):
            say(f"{index:>4}  {_state(folder, cell):<8} {cell.name}  {cell.key}")


def status(study: Study) -> None:
    """Show how far a study has come, and why cells failed; no feature file is looked at."""
    folder = _opened(study)
    planned = folder.plan()
    _show(folder, planned)
    for cell in planned:
        error = folder.failure(cell)
        if error is not None:
            say(f"FAILED {cell.name}: {error}")


def _show(folder: StudyFolder, planned: Plan) -> None:
    """Cells by kind: how many are done, failed and skipped, and how long the others will take."""
    from foci.studies.plan import KINDS
    from foci.studies.run import Estimates

    estimates = Estimates(folder, planned)
    say(f"{'cells':<8}{'all':>6}{'done':>6}{'failed':>8}{'skipped':>9}   time left, one at a time")
    parts: dict[str, Sequence[Cell]] = {kind: planned.select(kind=kind) for kind in KINDS}
    for name, cells in {**parts, "total": planned.cells}.items():
        if not cells and name != "total":
            continue
        states = [_state(folder, cell) for cell in cells]
        done, failed, skipped = map(states.count, ("done", "failed", "skipped"))
        left = [cell for cell, state in zip(cells, states, strict=True) if state != "done"]
        counts = f"{len(cells):>6}{done:>6}{failed:>8}{skipped:>9}"
        say(f"{name:<8}{counts}   {_time(left, estimates)}")


def _state(folder: StudyFolder, cell: Cell) -> str:
    if folder.result(cell) is not None:
        return "done"
    if folder.failure(cell) is not None:
        return "failed"
    return "to do" if folder.blocked(cell) is None else "skipped"


def _time(left: Sequence[Cell], estimates: Estimates) -> str:
    if not left:
        return "-"
    known = [seconds for cell in left if (seconds := estimates.of(cell)) is not None]
    if not known:
        return "unknown until the first of them has run"
    rest = len(left) - len(known)
    more = f", without {rest} of a kind that has not run yet" if rest else ""
    return f"about {duration(sum(known))}{more}"


def run(
    study: Study,
    workers: Annotated[
        int, typer.Option(min=1, help="Cells at the same time on this machine.")
    ] = 1,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster to join instead: auto, or HOST:PORT.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Kinds of cells, with commas: train,fit,audit,joint,cost.")
    ] = None,
    gpus_per_cell: Annotated[
        float | None,
        typer.Option(min=0.0, help="Share of a GPU per cell, on Ray; default a whole one."),
    ] = None,
    threads: Threads = 1,
) -> None:
    """Run the cells that are not done; the same command resumes after an interruption.

    A failed cell is listed and stops only the cells that need it.
    """
    starting("planning the study")
    _limit_threads(threads)
    from foci.engines.base import InProcess
    from foci.engines.local import Processes
    from foci.engines.ray import RayCluster
    from foci.studies.run import CellWork, StudyProgress, run_plan

    kinds = _kinds(only)
    folder = _opened(study)
    with resumable(), contextlib.ExitStack() as stack:
        if gpus_per_cell is not None and address is None:
            raise FociError("--gpus-per-cell", "needs Ray", "give --address too")
        planned = folder.new_plan()
        work = CellWork.of(folder, planned)
        engine: Engine = InProcess(work)
        if address is not None:
            engine = stack.enter_context(RayCluster(work, address))
        elif workers > 1:
            engine = stack.enter_context(Processes(work, workers, threads))
        progress = stack.enter_context(StudyProgress(engine.slots))
        tally = run_plan(
            folder, planned, engine,
            only=kinds, threads=threads, gpus=gpus_per_cell, report=progress,
        )  # fmt: skip
    failed, skipped = len(tally.failed), len(tally.skipped)
    say(f"{tally.done} of {tally.total} cells done, {failed} failed, {skipped} skipped")
    if failed or skipped:
        say(f"see foci study status {study}")
        raise typer.Exit(MANY_SKIPPED_CODE)


def _limit_threads(number: int) -> None:
    """Let the libraries that are loaded from now on compute with so many threads.

    Every cell sets torch's own; NumPy's linear algebra reads the environment once.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(number)


def _kinds(only: str | None) -> tuple[Kind, ...]:
    from foci.studies.plan import KINDS

    wanted = KINDS if only is None else only.split(",")
    for name in wanted:
        if name not in KINDS:
            raise FociError(f"--only {name}", "is no kind of cell", f"choose of {','.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in wanted)


def tables(
    study: Study,
    reports: Annotated[
        bool, typer.Option(help="Also write the report of every audit that has none.")
    ] = True,
) -> None:
    """Write all tables, figures and study.html from the cells that are finished.

    No model is run. What is missing is a gap with its reason; run the command again later.
    """
    starting("reading the study")
    from foci.reports import write_study_page
    from foci.studies.figures import FOLDER as FIGURES
    from foci.studies.tables import FOLDER as TABLES

    folder = _opened(study)
    page = write_study_page(folder, reports=reports)
    say(f"tables are in {folder.path / TABLES}, figures in {folder.path / FIGURES}")
    say_study_page(folder, page)


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

    Give it to sbatch; each task is foci study cell, and foci study tables follows the last. After a
    loss, print and give it again.
    """
    starting("reading the study")
    from foci.studies.run import array_job

    folder = _opened(study)
    text = array_job(
        folder, folder.new_plan(), threads=threads, gpus=gpus, at_once=at_once, options=option
    )
    typer.echo(text, nl=False)


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
    _limit_threads(threads)
    from foci.studies.run import cell_at, run_with_needs

    folder = _opened(study)
    planned = folder.plan()
    chosen = cell_at(planned, index, plan)
    outcome = run_with_needs(folder, planned, chosen, threads=threads)
    if outcome.error is not None:
        say(f"{chosen.name}: FAILED: {outcome.error}")
        raise typer.Exit(1)
    say(f"{chosen.name}: {duration(outcome.seconds)}")


app = FociTyper(
    new,
    plan,
    run,
    status,
    tables,
    slurm,
    cell,
    help="Many audits from one file: cohorts x backbones x seeds, with tables and figures.",
)
