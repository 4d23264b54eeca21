"""A table as Markdown: one's own value, under it the paper's with difference and z."""

from __future__ import annotations

from collections.abc import Sequence

from foci.studies.tables.table import (
    Cell,
    Column,
    Footnotes,
    Table,
    difference_text,
    own_text,
    paper_text,
)
from foci.words.rounding import decimals


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
