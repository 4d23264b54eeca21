"""``foci export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foci.cli.options import (
    AuditFolder,
    SlideImages,
    SlideMpp,
    TruthClass,
    TruthShare,
    TruthSource,
    names,
)
from foci.cli.terminal import starting
from foci.errors import FociError
from foci.words import counted


def export(
    audit: AuditFolder,
    to: Annotated[
        str, typer.Option(help="geojson (QuPath), csv, png, pdf, svg, card; several with commas.")
    ] = "png",
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to; default is exports in the audit's.")
    ] = None,
    slides: SlideImages = None,
    slide: Annotated[list[str], typer.Option(help="Slide to export; may be given again.")] = [],  # noqa: B006
    slide_list: Annotated[
        Path | None, typer.Option("--list", help="File with one slide per line.")
    ] = None,
    most_telling: Annotated[
        int, typer.Option(min=1, help="Slides that the audit chooses if none is named.")
    ] = 6,
    rankings: Annotated[
        str | None, typer.Option(help="Rankings, separated by commas; default all stored ones.")
    ] = None,
    k: Annotated[
        str, typer.Option("--k", help="Tiles per ranking: msk, decisive, all or a number.")
    ] = "msk",
    truth: TruthSource = None,
    truth_class: TruthClass = None,
    truth_share: TruthShare = 0.5,
    slide_mpp: SlideMpp = None,
) -> None:
    """Export the first tiles of each ranking: for QuPath, as a table, or as a figure for print.

    Without --slide or --list the audit chooses its most telling slides. The card is of the whole
    audit: Markdown and JSON for the documentation of the model.
    """
    starting("opening the audit")
    from foci.audits import StoredAudit
    from foci.audits.truth import read_truth
    from foci.exports import CARD
    from foci.exports import export as export_slides
    from foci.exports.tables import read_names, slides_to_export
    from foci.slides.find import find_images, match_images, read_thumbnails

    stored = StoredAudit.load(audit)
    listed = [] if slide_list is None else read_names(slide_list)
    chosen = slides_to_export(stored, [*slide, *listed], most_telling)
    if slides is None:
        images = {name: one.image for name, one in read_thumbnails(audit).items()}
    else:
        search = match_images([(name, None) for name in chosen], find_images(slides))
        images = {found.slide_id: found.path for found in search.found}
    for name in chosen:
        if name not in images and names(to) != (CARD,):
            typer.echo(f"note: no image of {name}; its tiles are drawn without tissue")
    if out is None:
        out = audit / "exports"
        if out.is_symlink():
            raise FociError(out, "is a link to another folder", "name a folder with --out")
    done = export_slides(
        stored,
        out,
        names(to),
        chosen,
        rankings=names(rankings or ""),
        k=k,
        images=images,
        slide_mpp=slide_mpp,
        truth=None if truth is None else read_truth(truth, name=truth_class, share=truth_share),
    )
    for path in done.files:
        typer.echo(f"wrote {path}")
    if not done.files:
        typer.echo(f"nothing written: {counted(len(done.skipped), 'slide')} skipped", err=True)
        raise typer.Exit(2)
