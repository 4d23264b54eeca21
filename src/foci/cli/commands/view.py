"""``foci view``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foci.cli.options import AcceptChanged, AuditFolder, SlideImages, SlideMpp
from foci.cli.terminal import open_audit, starting
from foci.words import counted


def view(
    audit: AuditFolder,
    slides: SlideImages = None,
    slide_mpp: SlideMpp = None,
    marks: Annotated[
        Path | None,
        typer.Option(help="CSV file for a reader's marks; default is reader-marks.csv in AUDIT."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port; default is a free one from 8765 on.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is reached from here only.")
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    accept_changed: AcceptChanged = False,
) -> None:
    """Look at an audit in the browser: reveal curves in step with the tissue.

    Without images of the slides it shows their tiles on a plain lattice.
    """
    starting("opening the audit")
    from foci.viewer.marks import MarkBook
    from foci.viewer.serve import serve
    from foci.viewer.slides import Catalogue, images_of

    stored = open_audit(audit, accept_changed)
    images = images_of(stored, slides)
    typer.echo(f"{counted(len(stored.slides), 'slide')}, {len(images)} with an image")
    serve(
        Catalogue(stored, images, slide_mpp),
        MarkBook(audit / "reader-marks.csv" if marks is None else marks),
        host=host,
        port=port,
        browser=browser,
        say=typer.echo,
    )
