"""Print notes and skipped slides before a long run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import typer

from foci.bags.cohort.torn import WARNING

if TYPE_CHECKING:
    from foci.bags import Cohort


def said(note: str) -> str:
    """A note as it is printed: what spoils the numbers is a warning."""
    return f"{'WARNING' if note.startswith(WARNING) else 'note'}: {note}"


def announce(
    cohort: Cohort, model_notes: Sequence[str] = (), say: Callable[[str], None] = typer.echo
) -> None:
    """Print the assumptions about model and slides, and the skipped slides with reasons."""
    for note in (*model_notes, *cohort.notes):
        say(said(note))
    for slide in cohort.skipped:
        say(f"skipped {slide.slide_id}: {slide.reason}")
