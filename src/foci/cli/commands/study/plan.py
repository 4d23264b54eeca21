"""``foci study plan`` and ``foci study status``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foci.cli.announce import say, starting
from foci.cli.commands.study.arguments import Study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foci.studies.engine.estimate import Estimates
    from foci.studies.folder import StudyFolder
    from foci.studies.plan.cells import Cell, Plan


def plan(
    study: Study,
    cells: Annotated[bool, typer.Option("--cells", help="List every cell.")] = False,
) -> None:
    """Show which cells a study has, which are done, and how long the others will take."""
    starting("reading the cohorts")
    from foci.studies.folder import StudyFolder

    folder = StudyFolder(study)
    planned = folder.new_plan()
    for note in planned.notes:
        say(f"note: {note}")
    _show(folder, planned)
    if cells:
        for index, cell in enumerate(planned):
            say(f"{index:>4}  {_state(folder, cell):<8} {cell.name}  {cell.key}")


def status(study: Study) -> None:
    """Show how far a study has come, and why cells failed; no feature file is looked at."""
    from foci.studies.folder import StudyFolder

    folder = StudyFolder(study)
    planned = folder.plan()
    _show(folder, planned)
    for cell in planned:
        error = folder.failure(cell)
        if error is not None:
            say(f"FAILED {cell.name}: {error}")


def _show(folder: StudyFolder, planned: Plan) -> None:
    from foci.studies.engine.estimate import Estimates
    from foci.studies.plan.cells import KINDS

    estimates = Estimates(folder, planned)
    say(f"{'cells':<8}{'all':>6}{'done':>6}{'failed':>8}{'skipped':>9}   time left, one at a time")
    for kind in KINDS:
        own = planned.select(kind=kind)
        if own:
            say(_row(folder, kind, own, estimates))
    say(_row(folder, "total", planned.cells, estimates))


def _row(folder: StudyFolder, name: str, cells: Sequence[Cell], estimates: Estimates) -> str:
    states = [_state(folder, cell) for cell in cells]
    left = [c for c, state in zip(cells, states, strict=True) if state != "done"]
    counted = (states.count(state) for state in ("done", "failed", "skipped"))
    done, failed, skipped = counted
    counts = f"{len(cells):>6}{done:>6}{failed:>8}{skipped:>9}"
    return f"{name:<8}{counts}   {_time(left, estimates)}"


def _state(folder: StudyFolder, cell: Cell) -> str:
    if folder.result(cell) is not None:
        return "done"
    if folder.failure(cell) is not None:
        return "failed"
    return "to do" if folder.blocked(cell) is None else "skipped"


def _time(left: Sequence[Cell], estimates: Estimates) -> str:
    from foci.progress import duration

    if not left:
        return "-"
    each = [estimates.of(cell) for cell in left]
    known = [seconds for seconds in each if seconds is not None]
    if not known:
        return "unknown until the first of them has run"
    rest = len(each) - len(known)
    more = f", without {rest} of a kind that has not run yet" if rest else ""
    return f"about {duration(sum(known))}{more}"
