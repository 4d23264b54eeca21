"""A table of a study: rows, columns, and in every cell one's own value beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from foci.studies.published import PublishedNumber
from foci.studies.read import Measure, Place, StudyNumbers, Value
from foci.words import decimals


@dataclass(frozen=True)
class Column:
    """A quantity.

    Attributes:
        key: Name in the CSV file and in the published numbers.
        head: In Markdown and on the page.
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
        return self.head + {"lower": " ↓", "higher": " ↑", None: ""}[self.better]

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
        plus = "+" if self.signed and number > 0 else ""
        return plus + decimals(number, self.digits)


@dataclass(frozen=True)
class Cell:
    """One's own value over seeds, or words instead of it, and what the paper prints there."""

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
        return self.z is not None and abs(self.z) > 2


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
        notes: How to read it, sentence by sentence.
        heads: Heads of the columns that name a row.
    """

    label: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: tuple[str, ...] = ()
    heads: tuple[str, ...] = ("Method",)

    @property
    def seeds(self) -> tuple[str, ...]:
        """Every seed that some cell has a number or a gap of."""
        found: dict[str, None] = {}
        for row in self.rows:
            for cell in row.cells.values():
                found |= dict.fromkeys([*cell.value.seeds, *filter(None, cell.value.gaps)])
        return tuple(found)


def footnote(reasons: list[str], reason: str) -> int:
    """Number of the reason of a gap, counted from 1; a new reason is added to the list."""
    if reason not in reasons:
        reasons.append(reason)
    return reasons.index(reason) + 1


def own_text(cell: Cell, column: Column) -> str:
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
        text += f" ± {decimals(value.std, column.digits)}"
    return text + (f" (n = {value.n})" if value.gaps and value.n else "")


def paper_text(paper: PublishedNumber, column: Column) -> str:
    """What the paper prints, with its own digits."""
    text = replace(column, digits=paper.digits, positive=False).text(paper.mean)
    return text if paper.std is None else f"{text} ± {decimals(paper.std, paper.digits)}"


def difference_text(cell: Cell, column: Column) -> str | None:
    """Own mean minus the paper's, with a sign; None where there is none."""
    if cell.difference is None:
        return None
    written = decimals(cell.difference, column.digits)
    return written if written.startswith("-") else f"+{written}"


# Columns and names that several tables share

MSK = Column("msk_cond", "MSK_cond", 2, "lower")
REACH = Column("reach", "Reach (%)", 1, "higher")
AUKC = Column("aukc", "AUKC", 3, "higher")
SRP = (MSK, REACH, AUKC)
"""The three numbers of the paper's reveal tables."""

RESTRICTED = Column("restricted", "restricted mean K", 1, "lower")
REVEAL = (*SRP, RESTRICTED)
SHARE = Column("share_32", "32 tiles, share of a bag (%)", 0)
RESTRICTED_NOTE = (
    "Restricted mean K counts a slide that never reaches kappa as K_max; MSK_cond leaves it out, "
    "so that failing lowers it."
)
SHOWN = {
    "transmil": "TransMIL",
    "abmil": "ABMIL",
    "clam-sb": "CLAM-SB",
    "clam-mb": "CLAM-MB",
    "attrimil": "AttriMIL",
    "acmil": "ACMIL",
    "asmil": "ASMIL",
    "mhim-mil": "MHIM-MIL",
    "nsclc": "NSCLC",
    "brca": "BRCA",
    "panda": "PANDA",
}
"""Names as the paper writes them; any other name is shown as it is."""

PRIMARY = "transmil"
WITH = "+ FOCI"


def shown(name: str) -> str:
    """A backbone or cohort as readers know it.

    >>> shown("mhim-mil"), shown("our-model")
    ('MHIM-MIL', 'our-model')
    """
    return SHOWN.get(name, name)


def primary(backbones: Iterable[str]) -> str:
    """The backbone of the paper's single-backbone tables: TransMIL, or else the first.

    >>> primary(["abmil", "transmil"]), primary(["abmil", "acmil"])
    ('transmil', 'abmil')
    """
    names = list(backbones)
    return PRIMARY if PRIMARY in names else names[0]


def srp_values(
    numbers: StudyNumbers,
    place: Place,
    ranking: str,
    *,
    kappa: float | None = None,
    k_max: int | None = None,
) -> dict[str, Value]:
    """MSK, Reach, AUKC and restricted mean of a ranking, label view."""
    at = {"msk_cond": kappa, "reach": kappa, "aukc": None, "restricted": kappa}
    return {
        metric: numbers.value(place, Measure(metric, ranking, "label", threshold, k_max))
        for metric, threshold in at.items()
    }


def cells(
    numbers: StudyNumbers, values: Mapping[str, Value], label: str, cohort: str, row: str
) -> dict[str, Cell]:
    """Values as cells, each beside what the paper prints in that table, cohort and row."""
    return {
        column: Cell(value, numbers.printed(label, cohort, row, column))
        for column, value in values.items()
    }
