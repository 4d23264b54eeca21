"""Print notes and skipped slides before a long run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from foci.audits import StoredAudit
    from foci.bags import Cohort


def announce(cohort: Cohort, model_notes: Sequence[str] = ()) -> None:
    """Print the assumptions about model and slides, and the skipped slides with reasons."""
    for note in (*model_notes, *cohort.notes):
        typer.echo(f"note: {note}")
    for slide in cohort.skipped:
        typer.echo(f"skipped {slide.slide_id}: {slide.reason}")


def announce_changed(audit: StoredAudit) -> None:
    """Print one line per file that is not as the audit wrote it."""
    for name in audit.changed:
        typer.echo(f"changed since the audit wrote it: {audit.folder / name}")
