"""A table as CSV: one line per cell, the same columns for every table."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from foci.studies.table import (
    Cell,
    Column,
    Footnotes,
    Row,
    Table,
    difference_text,
    own_text,
    paper_text,
)
from foci.words import decimals

FIXED = ("mean", "std", "n")
PAPER = ("paper_mean", "paper_std", "paper_seeds", "difference", "z", "marked", "gap")


def to_csv(table: Table) -> str:
    """Group, row, column, mean, std, n, every seed, and the paper's numbers; all digits."""
    seeds = table.seeds
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    names = ["group", *table.heads, "column"]
    writer.writerow([*names, *FIXED, *(f"seed_{seed}" for seed in seeds), *PAPER])
    for row in table.rows:
        for column in table.columns:
            if column.key in row.cells:
                cell = row.cells[column.key]
                numbers = [cell.value.seeds.get(seed) for seed in seeds]
                writer.writerow(
                    [row.group, *row.names, column.key, *_own_text(cell), *numbers, *_paper(cell)]
                )
    return file.getvalue()


def _own_text(cell: Cell) -> list[Any]:
    first = cell.value.mean if cell.text is None else cell.text
    return [first, cell.value.std, cell.value.n]


def _paper(cell: Cell) -> list[Any]:
    paper = cell.paper
    printed = [None] * 3 if paper is None else [paper.mean, paper.std, paper.seeds]
    marked = None if cell.z is None else "yes" if cell.marked else "no"
    return [*printed, cell.difference, cell.z, marked, cell.value.gap]


# A table as Markdown: one's own value, under it the paper's with difference and z.


def to_markdown(table: Table, header: Sequence[str] = ()) -> str:
    """Title, what differs from the paper, the table, notes and the reasons of gaps.

    Args:
        table: The table.
        header: Sentences on what differs from the paper's setting.
    """
    notes = Footnotes()
    lines = [f"## {table.title}", ""]
    lines += [f"- {sentence}" for sentence in header] + ([""] if header else [])
    lines += [_line([*table.heads, *(column.heading for column in table.columns)])]
    lines += [_line(["---"] * (len(table.heads) + len(table.columns)))]
    group = None
    for row in table.rows:
        if row.group and row.group != group:
            lines.append(
                _line([f"*{row.group}*", *[""] * (len(table.heads) + len(table.columns) - 1)])
            )
        group = row.group
        cells = [_cell(row.cells.get(c.key), c, notes) for c in table.columns]
        lines.append(_line([*map(_escaped, row.names), *cells]))
    lines += [""] + [f"- {note}" for note in table.notes]
    lines += [f"- [{i}] {reason}" for i, reason in enumerate(notes.reasons, 1)]
    return "\n".join(lines).rstrip() + "\n"


def _cell(cell: Cell | None, column: Column, notes: Footnotes) -> str:
    if cell is None:
        return ""
    text = _escaped(own_text(cell, column))
    if cell.value.gap is not None:
        text += f" [{notes.number(cell.value.gap)}]"
    if cell.paper is not None:
        text += f"<br>paper {paper_text(cell.paper, column)}"
        difference = difference_text(cell, column)
        text += "" if difference is None else f"<br>{_compared(cell, difference)}"
    return text


def _compared(cell: Cell, difference: str) -> str:
    """Difference to the paper and z; a z beyond 2 in bold."""
    if cell.z is None:
        return difference
    z = f"z = {decimals(cell.z, 1)}"
    return f"{difference}, **{z}**" if cell.marked else f"{difference}, {z}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escaped(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


# A table as LaTeX: a line of one's own values, under it the paper's; needs ``booktabs``.


_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "κ": r"$\kappa$",
    "Δ": r"$\Delta$", "→": r"$\rightarrow$", "≥": r"$\geq$", "λ": r"$\lambda$",
    "<": r"$<$", ">": r"$>$", "ŷ": r"$\hat{y}$",
}  # fmt: skip
WIDE = 8
"""A table of more columns is scaled to the width of the text."""

_KNOWN = re.compile("|".join(map(re.escape, _SIGNS)))


def to_latex(table: Table, header: Sequence[str] = ()) -> str:
    """A float with caption and label; what differs from the paper stands above it as comments.

    Args:
        table: The table.
        header: Sentences on what differs from the paper's setting.
    """
    notes = Footnotes()
    width = len(table.heads) + len(table.columns)
    fit = r"\resizebox{\linewidth}{!}{" if width > WIDE else ""
    body = list(_body(table, notes, width))
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
    reasons = (f"[{i}] {reason}." for i, reason in enumerate(notes.reasons, 1))
    said = " ".join(escaped(sentence) for sentence in (*table.notes, *reasons))
    if said:
        lines += ["", rf"\smallskip\parbox{{\linewidth}}{{\scriptsize {said}}}"]
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


def _body(table: Table, notes: Footnotes, width: int) -> Iterable[str]:
    group = None
    for row in table.rows:
        if row.group and row.group != group:
            yield rf"\multicolumn{{{width}}}{{l}}{{\textit{{{escaped(row.group)}}}}} \\"
        group = row.group
        own = [_own(row.cells.get(c.key), c, notes) for c in table.columns]
        yield " & ".join([*map(escaped, row.names), *own]) + r" \\"
        if any(cell.paper is not None for cell in row.cells.values()):
            yield _paper_line(row, table)


def _own(cell: Cell | None, column: Column, notes: Footnotes) -> str:
    if cell is None:
        return ""
    text = escaped(own_text(cell, column))
    gap = cell.value.gap
    return text if gap is None else rf"{text}\,[{notes.number(gap)}]"


def _paper_line(row: Row, table: Table) -> str:
    cells = []
    for column in table.columns:
        cell = row.cells.get(column.key)
        known = cell is not None and cell.paper is not None
        cells.append(rf"{{\scriptsize {_printed(cell, column)}}}" if cell and known else "")
    names = [r"{\scriptsize\quad paper}", *[""] * (len(table.heads) - 1)]
    return " & ".join([*names, *cells]) + r" \\"


def _printed(cell: Cell, column: Column) -> str:
    text = "" if cell.paper is None else escaped(paper_text(cell.paper, column))
    difference = difference_text(cell, column)
    if difference is None:
        return text
    text += f" ({difference}"
    if cell.z is None:
        return f"{text})"
    z = f"$z={decimals(cell.z, 1)}$"
    return rf"{text}, \textbf{{{z}}})" if cell.marked else f"{text}, {z})"
