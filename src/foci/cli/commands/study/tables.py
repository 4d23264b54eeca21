"""``foci study tables``."""

from __future__ import annotations

from typing import Annotated

import typer

from foci.cli.announce import starting
from foci.cli.commands.study.arguments import Study


def tables(
    study: Study,
    reports: Annotated[
        bool, typer.Option(help="Write the report of every audit, which the page links to.")
    ] = True,
) -> None:
    """Write tables, figures and study.html from the cells that are done; nothing is computed."""
    starting("reading the results")
    from foci.progress import track
    from foci.reports.study import write_study_page
    from foci.studies.folder import StudyFolder

    page = write_study_page(StudyFolder(study), reports=reports, progress=track)
    typer.echo(f"wrote {page}")
