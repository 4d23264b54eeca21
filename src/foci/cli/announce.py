"""Print notes and skipped slides before a long run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import typer

from foci.bags.cohort.torn import line_of

if TYPE_CHECKING:
    from foci.audits.records import Alarm
    from foci.bags import Cohort


def announce(
    cohort: Cohort,
    model_notes: Sequence[str] = (),
    alarms: Sequence[Alarm] = (),
    say: Callable[[str], None] = typer.echo,
) -> None:
    """Print alarms, the assumptions about model and slides, and the skipped slides with reasons."""
    for alarm in alarms:
        say(f"ALARM, {alarm.kind}: {alarm.sentence}")
    for note in (*model_notes, *cohort.notes):
        say(line_of(note))
    for slide in cohort.skipped:
        say(f"skipped {slide.slide_id}: {slide.reason}")
