"""Columns of numbers in a label table: time and event, a value, or a 0 or 1 per label.

They are read by the importers of the label tables, column by column, so that every table that can
name a class can name a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from foci.bags.bag import SlideRows
from foci.bags.importers import read_slides
from foci.errors import CohortError
from foci.words import some

Kind = Literal["survival", "value", "labels"]

_MARKS = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "0.0": 0.0, "1.0": 1.0}


@dataclass(frozen=True)
class Outcomes:
    """Which columns of a label table to read, and as what.

    Attributes:
        kind: ``"survival"``: a time and whether the event was seen then; ``"value"``: a number;
            ``"labels"``: a 0 or 1 per column.
        columns: Their names.
    """

    kind: Kind
    columns: tuple[str, ...]

    @classmethod
    def named(
        cls,
        time: str | None = None,
        event: str | None = None,
        value: str | None = None,
        labels: Sequence[str] | None = None,
    ) -> Outcomes | None:
        """The columns that were asked for; None if none were.

        >>> Outcomes.named(time="days", event="died")
        Outcomes(kind='survival', columns=('days', 'died'))
        >>> Outcomes.named(time="days")
        Traceback (most recent call last):
        foci.errors.CohortError: --time days: says nothing without --event; give both
        """
        if (time is None) != (event is None):
            given, lacking = ("--time", "--event") if event is None else ("--event", "--time")
            where = f"{given} {time if event is None else event}"
            raise CohortError(where, f"says nothing without {lacking}", "give both")
        kinds: list[tuple[Kind, tuple[str, ...]]] = []
        if time is not None and event is not None:
            kinds.append(("survival", (time, event)))
        if value is not None:
            kinds.append(("value", (value,)))
        if labels:
            kinds.append(("labels", tuple(labels)))
        if len(kinds) > 1:
            what = f"are of two kinds: {kinds[0][0]} and {kinds[1][0]}"
            raise CohortError("label columns", what, "give one")
        return cls(*kinds[0]) if kinds else None

    @property
    def option(self) -> str:
        """The option that names the first column."""
        return {"survival": "--time", "value": "--value", "labels": "--label-columns"}[self.kind]

    def read(
        self, labels: str | Path, *, label_column: str | None = None, **tables: Any
    ) -> SlideRows:
        """The slides of a label table with these numbers, and without a class.

        A slide that lacks one of the numbers can be audited, but is not scored.

        Raises:
            CohortError: If an entry is no such number, or the numbers say nothing: no event, a
                constant value, a label that no slide has.
        """
        if label_column is not None:
            where = f"--label-column {label_column}"
            raise CohortError(where, f"and {self.option} are two kinds of label", "give one")
        tables_of = [read_slides(labels, label_column=name, **tables) for name in self.columns]
        rows = tables_of[0]
        texts = [{one.slide_id: one.label for one in table.slides} for table in tables_of]
        slides = []
        for slide in rows.slides:
            cells = [text.get(slide.slide_id) for text in texts]
            known: tuple[float, ...] = ()
            if all(cell is not None for cell in cells):
                known = tuple(
                    self._number(labels, slide.slide_id, place, str(cell))
                    for place, cell in enumerate(cells)
                )
            slides.append(replace(slide, label=None, outcome=known))
        self._check(labels, [slide.outcome for slide in slides if slide.outcome])
        without = [slide.slide_id for slide in slides if not slide.outcome]
        note = (f"no {' and '.join(self.columns)} for {some(without)}",) if without else ()
        own = tuple(one for one in rows.notes if not one.startswith(f"no {self.columns[0]} for"))
        return SlideRows(tuple(slides), own + note)

    def _number(self, table: str | Path, slide: str, place: int, cell: str) -> float:
        column = self.columns[place]
        where = f"{table}, slide {slide}"
        if self.kind == "labels" or (self.kind == "survival" and place == 1):
            if cell.strip().lower() not in _MARKS:
                what = f"has {column} {cell!r}, which is neither 0 nor 1"
                raise CohortError(where, what, "write 1 where it was seen, else 0")
            return _MARKS[cell.strip().lower()]
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            what = f"has {column} {cell!r}, which is no number"
            raise CohortError(where, what, "write a number, or leave the cell empty")
        if self.kind == "survival" and number <= 0:
            what = f"has {column} {cell}, which is not positive"
            raise CohortError(where, what, "give the time from diagnosis to event or last visit")
        return number

    def _check(self, table: str | Path, known: Sequence[tuple[float, ...]]) -> None:
        """Refuse numbers that say nothing."""
        if not known:
            what = f"has no slide with {' and '.join(self.columns)}"
            raise CohortError(table, what, "fill the columns")
        if self.kind == "survival" and not any(event for _, event in known):
            what = f"has no event in {self.columns[1]}: all of {len(known)} slides are censored"
            raise CohortError(table, what, "write 1 where the event was seen")
        if self.kind == "value" and len({row[0] for row in known}) == 1:
            what = f"has the same {self.columns[0]} ({known[0][0]:g}) on every slide"
            raise CohortError(table, what, "give a column that differs")
        for place, column in enumerate(self.columns if self.kind == "labels" else ()):
            present = {row[place] for row in known}
            if len(present) == 1:
                what = f"has {column} {present.pop():g} on every slide"
                raise CohortError(table, what, "leave the label out, or add slides")
