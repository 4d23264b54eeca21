"""A table as CSV, Markdown and LaTeX.

CSV has one line per cell, all digits, and the same columns for every table. Markdown and LaTeX show
one's own value, and under it the paper's with difference and z; a z beyond 2 is bold.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from foci.studies.table import (
    Cell,
    Column,
    Table,
    difference_text,
    footnote,
    own_text,
    paper_text,
)
from foci.words import decimals

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
    seeds = table.seeds
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    paper = ("paper_mean", "paper_std", "paper_seeds", "difference", "z", "marked", "gap")
    names = ("group", *table.heads, "column", "mean", "std", "n")
    writer.writerow([*names, *(f"seed_{seed}" for seed in seeds), *paper])
    for row in table.rows:
        for column in table.columns:
            cell = row.cells.get(column.key)
            if cell is None:
                continue
            value, own = cell.value, cell.value.mean if cell.text is None else cell.text
            printed = cell.paper and (cell.paper.mean, cell.paper.std, cell.paper.seeds)
            marked = None if cell.z is None else "yes" if cell.marked else "no"
            writer.writerow(
                [
                    *(row.group, *row.names, column.key, own, value.std, value.n),
                    *(value.seeds.get(seed) for seed in seeds),
                    *(printed or [None] * 3),
                    *(cell.difference, cell.z, marked, value.gap),
                ]
            )
    return file.getvalue()


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
    difference = difference_text(cell, column)
    if difference is not None:
        text += f"<br>{difference}"
    if cell.z is not None:
        z = f"z = {decimals(cell.z, 1)}"
        text += f", **{z}**" if cell.marked else f", {z}"
    return text


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
    compared = difference_text(cell, column)
    if cell.z is not None:
        z = f"$z={decimals(cell.z, 1)}$"
        compared = rf"{compared}, \textbf{{{z}}}" if cell.marked else f"{compared}, {z}"
    return (
        rf"{{\scriptsize {text}}}" if compared is None else rf"{{\scriptsize {text} ({compared})}}"
    )
