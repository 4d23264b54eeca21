"""Print notes and skipped slides before a long run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import typer

from foci.errors import printable

if TYPE_CHECKING:
    from foci.audits import StoredAudit
    from foci.audits.records import Alarm
    from foci.bags import Cohort

MANY_SKIPPED_CODE = 3
"""Exit code of a command that has finished, but skipped more than 10 % of the slides."""


def starting(what: str) -> None:
    """Say on a terminal what a command does before it imports torch, which takes seconds.

    In a pipe an error stays the only line.
    """
    if sys.stderr.isatty():
        typer.echo(f"{what} ...", err=True)


def say(line: str) -> None:
    """Print one line; control characters in it, of a slide's name for instance, are escaped."""
    typer.echo(printable(line))


def announce(
    cohort: Cohort,
    model_notes: Sequence[str] = (),
    alarms: Sequence[Alarm] = (),
    say: Callable[[str], None] = say,
) -> None:
    """Print alarms, the assumptions about model and slides, and the skipped slides with reasons.

    Where more than 10 % of the slides are skipped, that is said first.
    """
    from foci.bags.cohort.patient_overlap import line_of

    if line := many_skipped_of(cohort):
        say(f"warning: {line}")
    for alarm in alarms:
        say(f"ALARM, {alarm.kind}: {alarm.sentence}")
    for note in (*model_notes, *cohort.notes):
        say(line_of(note))
    for slide in cohort.skipped:
        say(f"skipped {slide.slide_id}: {slide.reason}")


def many_skipped_of(cohort: Cohort) -> str | None:
    """A sentence if more than 10 % of a cohort's slides were skipped."""
    from foci.bags.cohort.slide import many_skipped

    return many_skipped(len(cohort.skipped), len(cohort) + len(cohort.skipped))


def end_if_many(line: str | None) -> None:
    """End a command that has done its work, with exit code 3 if too many slides were skipped."""
    if line is not None:
        raise typer.Exit(MANY_SKIPPED_CODE)


def announce_changed(audit: StoredAudit) -> None:
    """Print one line per file that is not as the audit wrote it."""
    for name in audit.changed:
        say(f"changed since the audit wrote it: {audit.folder / name}")
