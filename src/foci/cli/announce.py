"""Print notes and skipped slides before a long run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from foci.audits.records import Alarm
    from foci.bags import Cohort


def announce(cohort: Cohort, model_notes: Sequence[str] = (), alarms: Sequence[Alarm] = ()) -> None:
    """Print alarms, the assumptions about model and slides, and the skipped slides with reasons."""
    for alarm in alarms:
        typer.echo(f"ALARM, {alarm.kind}: {alarm.sentence}")
    for note in (*model_notes, *cohort.notes):
        typer.echo(f"note: {note}")
    for slide in cohort.skipped:
        typer.echo(f"skipped {slide.slide_id}: {slide.reason}")
