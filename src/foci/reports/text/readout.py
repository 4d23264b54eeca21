"""How the validation slides chose the order that answers "which tiles?", as the page shows it."""

from __future__ import annotations

from dataclasses import dataclass

from foci.audits.folder.manifest import Manifest
from foci.audits.records import Readout, ReadoutRow
from foci.reports.text.answers import ComparisonLine, comparison_line
from foci.reports.text.wording import NOTHING, fixed, percent, tiles

HEAD = (
    "decisive K, median",
    "slides that have one",
    "smaller than evidence",
    "larger than evidence",
    "mean loss on deletion",
)
"""Columns of the table after the name of the order."""


@dataclass(frozen=True)
class ReadoutLine:
    """One order on the validation slides: whether it was chosen, and a cell per column."""

    order: str
    chosen: bool
    cells: tuple[str, ...]


@dataclass(frozen=True)
class ReadoutTable:
    """The choice of the readout.

    Attributes:
        sentence: What was chosen, on how many slides.
        head: Columns of the table.
        rows: Its rows.
        lines: The comparisons that the rule asks for.
        rule: The rule, in words.
    """

    sentence: str
    head: tuple[str, ...]
    rows: tuple[ReadoutLine, ...]
    lines: tuple[ComparisonLine, ...]
    rule: str


def readout_of(manifest: Manifest) -> ReadoutTable | None:
    """The table of an audit whose validation slides chose; None where they did not."""
    made = manifest.readout
    if made is None:
        return None
    first, second = made.rows[-1].ranking, made.rows[0].ranking
    return ReadoutTable(
        sentence=_sentence(made),
        head=HEAD,
        rows=tuple(
            ReadoutLine(row.ranking, row.ranking == made.chosen, _cells(row, row.ranking == second))
            for row in made.rows
        ),
        lines=tuple(comparison_line(first, second, axis) for axis in made.comparisons),
        rule=made.rule,
    )


def _sentence(made: Readout) -> str:
    return (
        f"The {made.chosen} order does. It was chosen on {made.slides_in_words}; no audited slide "
        "was read for it. The selector was fitted with the help of the same slides, so that its "
        "numbers here are a little too good."
    )


def _cells(row: ReadoutRow, is_base: bool) -> tuple[str, ...]:
    against = (NOTHING, NOTHING) if is_base else (str(row.fewer), str(row.more))
    decisive = "more than half have none" if row.decisive is None else tiles(row.decisive)
    return decisive, percent(row.share), *against, fixed(row.area)
