"""A table of a study: rows, columns, and in every cell one's own value beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from foci.studies.published import PublishedNumber
from foci.studies.readings.values import Value
from foci.words.rounding import decimals

MARKED = 2.0
"""A z beyond this is marked."""


@dataclass(frozen=True)
class Column:
    """A quantity.

    Attributes:
        key: Name in the CSV file and in the published numbers.
        head: In Markdown and on the page.
        digits: Decimals.
        better: Which direction is better; None where neither is.
        signed: Whether a plus sign is written.
        positive: Whether 0 cannot be: a number that would round to 0 is written as a bound.
    """

    key: str
    head: str
    digits: int
    better: Literal["lower", "higher"] | None = None
    signed: bool = False
    positive: bool = False

    @property
    def heading(self) -> str:
        """The head with an arrow towards what is better."""
        arrow = {"lower": " ↓", "higher": " ↑", None: ""}[self.better]
        return self.head + arrow

    def text(self, number: float) -> str:
        """A number with the decimals of the column; minus is a hyphen here.

        >>> Column("shi", "SHI", 3, signed=True).text(0.5621)
        '+0.562'
        >>> Column("pvalue", "p", 4, positive=True).text(0.00002)
        '< 0.0001'
        """
        smallest = 10**-self.digits
        if self.positive and number < smallest / 2:
            return f"< {decimals(smallest, self.digits)}"
        written = decimals(number, self.digits)
        return (
            f"+{written}" if self.signed and number > 0 and not written.startswith("-") else written
        )


@dataclass(frozen=True)
class Cell:
    """One's own value, and what the paper prints there.

    Attributes:
        value: Over seeds.
        paper: None where the paper prints nothing.
        text: Words that stand instead of a number.
    """

    value: Value
    paper: PublishedNumber | None = None
    text: str | None = None

    @property
    def difference(self) -> float | None:
        """Own mean minus the paper's; None where one of them is missing."""
        if self.value.mean is None or self.paper is None:
            return None
        return self.value.mean - self.paper.mean

    @property
    def z(self) -> float | None:
        r"""Difference in units of the spread over seeds of both.

        .. math:: z = (m_y - m_p) / \sqrt{s_y^2 + s_p^2}

        None where a standard deviation is missing or 0.
        """
        if self.difference is None or self.paper is None:
            return None
        own, other = self.value.std, self.paper.std
        if not own or not other:
            return None
        return self.difference / math.hypot(own, other)

    @property
    def marked(self) -> bool:
        """Whether the z is beyond 2 in either direction."""
        return self.z is not None and abs(self.z) > MARKED


@dataclass(frozen=True)
class Row:
    """One line: its names (one per head of the table), its cells by column, its group."""

    names: tuple[str, ...]
    cells: Mapping[str, Cell]
    group: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the paper, or one of our own.

    Attributes:
        label: The paper's LaTeX label without ``tab:``; also the name of its files.
        title: One sentence.
        heads: Heads of the columns that name a row.
        columns: The quantities.
        rows: The lines.
        notes: How to read it, sentence by sentence.
    """

    label: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def cell(self, names: tuple[str, ...], column: str) -> Cell:
        """The cell of a row and a column."""
        return next(row for row in self.rows if row.names == names).cells[column]

    @property
    def seeds(self) -> tuple[str, ...]:
        """Every seed that some cell has a number or a gap of."""
        found: dict[str, None] = {}
        for row in self.rows:
            for cell in row.cells.values():
                found |= dict.fromkeys([*cell.value.seeds, *filter(None, cell.value.gaps)])
        return tuple(found)


@dataclass
class Footnotes:
    """Reasons of gaps, numbered in the order in which a table shows them."""

    reasons: list[str] = field(default_factory=list)

    def number(self, reason: str) -> int:
        """Number of a reason, counted from 1; the same reason has the same number."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason) + 1


def own_text(cell: Cell, column: Column, plus_minus: str = "±") -> str:
    """One's own mean and standard deviation; a dash where there is none.

    >>> own_text(Cell(Value.over({"42": 3.0, "43": 3.6, "44": 3.3})), Column("k", "K", 2))
    '3.30 ± 0.24'
    """
    value = cell.value
    if cell.text is not None:
        return cell.text
    if value.mean is None:
        return "-"
    text = column.text(value.mean)
    if value.std is not None:
        text += f" {plus_minus} {decimals(value.std, column.digits)}"
    return text + (f" (n = {value.n})" if value.gaps and value.n else "")


def paper_text(paper: PublishedNumber, column: Column, plus_minus: str = "±") -> str:
    """What the paper prints, with its own digits."""
    own = Column(column.key, column.head, paper.digits, signed=column.signed)
    text = own.text(paper.mean)
    spread = "" if paper.std is None else f" {plus_minus} {decimals(paper.std, paper.digits)}"
    return text + spread


def difference_text(cell: Cell, column: Column) -> str | None:
    """Own mean minus the paper's, with a sign; None where there is none."""
    if cell.difference is None:
        return None
    written = decimals(cell.difference, column.digits)
    return written if written.startswith("-") else f"+{written}"
