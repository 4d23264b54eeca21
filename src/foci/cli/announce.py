"""What a person should know of a cohort before hours are spent on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from foci.bags import Cohort


def announce(cohort: Cohort) -> None:
    """Print what was assumed, and which slides are left out and why."""
    for note in cohort.notes:
        typer.echo(f"note: {note}")
    for slide in cohort.skipped:
        typer.echo(f"skipped {slide.slide_id}: {slide.reason}")
