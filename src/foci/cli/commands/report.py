"""``foci report``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from foci.audits.settings import View


class ViewName(str, Enum):
    """Which class is followed."""

    prediction = "prediction"
    label = "label"


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of foci audit.")],
    kappa: Annotated[
        float | None, typer.Option(help="Another operating confidence, between 0 and 1.")
    ] = None,
    k_max: Annotated[
        int | None, typer.Option(help="A smaller budget of tiles than the audit had.")
    ] = None,
    view: Annotated[
        ViewName | None, typer.Option(help="Which view stands first; default is the audit's.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The page; default is report.html in the folder, or report-... there."),
    ] = None,
) -> None:
    """Write the report of an audit again, if wanted at another threshold, budget or view.

    No model is run: everything is read from the stored curves. The audit's own numbers stay as
    they are; a report at other settings gets a name of its own.
    """
    from foci.audits import StoredAudit
    from foci.cli.pages import page
    from foci.reports import write_report

    file, audit = page(out), StoredAudit.load(folder)
    chosen: View | None = None if view is None else view.value
    path = write_report(audit, file, kappa=kappa, k_max=k_max, view=chosen)
    typer.echo(f"wrote {path}")
