"""Print notes and skipped slides before a long run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from foci.bags import Cohort


def starting(what: str) -> None:
    """Say what a command does before it imports torch, which takes seconds on a busy machine."""
    typer.echo(f"{what} ...", err=True)


def announce(cohort: Cohort, model_notes: Sequence[str] = ()) -> None:
    """Print the assumptions about model and slides, and the skipped slides with reasons."""
    for note in (*model_notes, *cohort.notes):
        typer.echo(f"note: {note}")
    for slide in cohort.skipped:
        typer.echo(f"skipped {slide.slide_id}: {slide.reason}")
