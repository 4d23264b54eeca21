"""A table of a study, in every cell one's own value beside the paper's; as CSV, Markdown and LaTeX.

CSV has one line per cell, all digits, and the same columns for every table. Markdown and LaTeX show
one's own value, and under it the paper's with difference and z; a z beyond 2 is bold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from foci.studies.read import Measure, Place, PublishedNumber, StudyNumbers, Value
from foci.words import csv_text, decimals


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


# CSV, Markdown and LaTeX

_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "κ": r"$\kappa$",
    "Δ": r"$\Delta$", "→": r"$\rightarrow$", "≥": r"$\geq$", "λ": r"$\lambda$",
    "<": r"$<$", ">": r"$>$", "ŷ": r"$\hat{y}$",
}  # fmt: skip
_KNOWN = re.compile("|".join(map(re.escape, _SIGNS)))

WIDE = 8
"""A LaTeX table of more columns is scaled to the width of the text."""


def to_csv(table: Table) -> str:
    """Group, row, column, mean, std, n, every seed, and the paper's numbers."""
    values = [cell.value for row in table.rows for cell in row.cells.values()]
    seeds = dict.fromkeys(seed for one in values for seed in (*one.seeds, *one.gaps) if seed)
    paper = ("paper_mean", "paper_std", "paper_seeds", "difference", "z", "marked", "gap")
    names = ("group", *table.heads, "column", "mean", "std", "n")
    rows: list[list[object]] = [[*names, *(f"seed_{seed}" for seed in seeds), *paper]]
    for row in table.rows:
        for column in table.columns:
            cell = row.cells.get(column.key)
            if cell is None:
                continue
            value, own = cell.value, cell.value.mean if cell.text is None else cell.text
            printed = cell.paper and (cell.paper.mean, cell.paper.std, cell.paper.seeds)
            marked = None if cell.z is None else "yes" if cell.marked else "no"
            rows.append(
                [
                    *(row.group, *row.names, column.key, own, value.std, value.n),
                    *(value.seeds.get(seed) for seed in seeds),
                    *(printed or [None] * 3),
                    *(cell.difference, cell.z, marked, value.gap),
                ]
            )
    return csv_text(rows)


def to_markdown(table: Table, header: Sequence[str] = ()) -> str:
    """Title, header (what differs from the paper), the table, notes and the reasons of gaps."""
    reasons: list[str] = []
    width = len(table.heads) + len(table.columns)
    rows = [[*table.heads, *(column.heading for column in table.columns)], ["---"] * width]
    group = None
    for row in table.rows:
        if row.group and row.group != group:
            rows.append([f"*{row.group}*", *[""] * (width - 1)])
        group = row.group
        cells = [_markdown_cell(row.cells.get(c.key), c, reasons) for c in table.columns]
        rows.append([*map(_one_line, row.names), *cells])
    lines = [f"## {table.title}", ""]
    lines += [f"- {sentence}" for sentence in header] + ([""] if header else [])
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += [""] + [f"- {note}" for note in table.notes]
    lines += [f"- [{i}] {reason}" for i, reason in enumerate(reasons, 1)]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_cell(cell: Cell | None, column: Column, reasons: list[str]) -> str:
    if cell is None:
        return ""
    text = _one_line(own_text(cell, column))
    if cell.value.gap is not None:
        text += f" [{footnote(reasons, cell.value.gap)}]"
    if cell.paper is not None:
        text += f"<br>paper {paper_text(cell.paper, column)}"
    compared = _compared(cell, column, "z = {}", "**{}**")
    return text if compared is None else f"{text}<br>{compared}"


def _compared(cell: Cell, column: Column, z: str, bold: str) -> str | None:
    """The difference to the paper, and its z in these formats."""
    difference = difference_text(cell, column)
    if cell.z is None:
        return difference
    text = z.format(decimals(cell.z, 1))
    return f"{difference}, {bold.format(text) if cell.marked else text}"


def _one_line(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


def to_latex(table: Table, header: Sequence[str] = ()) -> str:
    """A float with caption and label, for ``booktabs``; the header stands above it as comments."""
    reasons: list[str] = []
    width = len(table.heads) + len(table.columns)
    fit = r"\resizebox{\linewidth}{!}{" if width > WIDE else ""
    body = list(_latex_body(table, reasons, width))
    heads = [*table.heads, *(column.heading for column in table.columns)]
    lines = [f"% {_plain(sentence)}" for sentence in header]
    lines += [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{escaped(table.title)}}}",
        rf"\label{{tab:{table.label}}}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        rf"{fit}\begin{{tabular}}{{{'l' * len(table.heads)}{'c' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(map(escaped, heads)) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}" + ("}" if fit else ""),
    ]
    gaps = (f"[{i}] {reason}." for i, reason in enumerate(reasons, 1))
    notes = " ".join(escaped(sentence) for sentence in (*table.notes, *gaps))
    if notes:
        lines += ["", rf"\smallskip\parbox{{\linewidth}}{{\scriptsize {notes}}}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def document(labels: Iterable[str]) -> str:
    """A document that includes the tables of these labels, to be compiled beside their files."""
    included = "".join(rf"\input{{{label}}}" + "\n\\clearpage\n" for label in labels)
    return (
        "\\documentclass{article}\n"
        "\\usepackage{booktabs,graphicx}\n"
        "\\usepackage[landscape,margin=1cm]{geometry}\n"
        f"\\begin{{document}}\n{included}\\end{{document}}\n"
    )


def escaped(text: str) -> str:
    r"""Text that LaTeX sets as it is written.

    >>> print(escaped("Reach (%) of no_suff ± 1"))
    Reach (\%) of no\_suff $\pm$ 1
    """
    return _plain(_KNOWN.sub(lambda found: _SIGNS[found.group()], text))


def _plain(text: str) -> str:
    """Without line breaks, and without signs that a LaTeX font may lack."""
    return " ".join(text.encode("ascii", "replace").decode().split())


def _latex_body(table: Table, reasons: list[str], width: int) -> Iterator[str]:
    group = None
    for row in table.rows:
        if row.group and row.group != group:
            yield rf"\multicolumn{{{width}}}{{l}}{{\textit{{{escaped(row.group)}}}}} \\"
        group = row.group
        own = [_latex_cell(row.cells.get(c.key), c, reasons) for c in table.columns]
        yield " & ".join([*map(escaped, row.names), *own]) + r" \\"
        if any(cell.paper is not None for cell in row.cells.values()):
            names = [r"{\scriptsize\quad paper}", *[""] * (len(table.heads) - 1)]
            printed = [_latex_paper(row.cells.get(c.key), c) for c in table.columns]
            yield " & ".join([*names, *printed]) + r" \\"


def _latex_cell(cell: Cell | None, column: Column, reasons: list[str]) -> str:
    if cell is None:
        return ""
    text, gap = escaped(own_text(cell, column)), cell.value.gap
    return text if gap is None else rf"{text}\,[{footnote(reasons, gap)}]"


def _latex_paper(cell: Cell | None, column: Column) -> str:
    if cell is None or cell.paper is None:
        return ""
    text = escaped(paper_text(cell.paper, column))
    compared = _compared(cell, column, "$z={}$", r"\textbf{{{}}}")
    return (
        rf"{{\scriptsize {text}}}" if compared is None else rf"{{\scriptsize {text} ({compared})}}"
    )
