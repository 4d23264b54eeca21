"""``foci study tables``."""

from __future__ import annotations

from typing import Annotated

import typer

from foci.cli.announce import say, starting
from foci.cli.commands.study.arguments import Study
from foci.cli.pages import say_study_page


def tables(
    study: Study,
    reports: Annotated[
        bool, typer.Option(help="Also write the report of every audit that has none.")
    ] = True,
) -> None:
    """Write all tables, figures and study.html from the cells that are finished.

    No model is run. What is missing is a gap with its reason; give the command again later.
    """
    starting("reading the study")
    from foci.progress import track
    from foci.reports import write_study_page
    from foci.studies.figures import FOLDER as FIGURES
    from foci.studies.folder import StudyFolder
    from foci.studies.tables import FOLDER as TABLES

    folder = StudyFolder(study)
    page = write_study_page(folder, reports=reports, progress=track)
    say(f"tables are in {folder.path / TABLES}, figures in {folder.path / FIGURES}")
    say_study_page(folder, page)
