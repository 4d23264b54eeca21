"""``foci study new``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foci.cli.announce import starting
from foci.errors import FociError


def new(
    out: Annotated[Path, typer.Argument(help="Folder for the study.")],
    profile: Annotated[
        str, typer.Option(help="paper: its seven backbones, sweeps and tables; or foci.")
    ] = "paper",
) -> None:
    """Write a commented study.yaml to start from."""
    starting("writing a study")
    from foci.files.atomic import write_whole
    from foci.studies.folder import STUDY
    from foci.studies.plan.template import template

    text = template(out.resolve().name, profile)
    path = out / STUDY
    if path.exists():
        raise FociError(path, "exists", "edit it, or choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    typer.echo(f"wrote {path}: name your cohorts there, then run foci study plan {out}")
