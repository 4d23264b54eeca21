"""What a person should know of a cohort before hours are spent on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from foci.bags import Cohort


def announce(cohort: Cohort, model_notes: Sequence[str] = ()) -> None:
    """Print what was assumed of model and slides, and which slides are left out and why."""
    for note in (*model_notes, *cohort.notes):
        typer.echo(f"note: {note}")
    for slide in cohort.skipped:
        typer.echo(f"skipped {slide.slide_id}: {slide.reason}")
