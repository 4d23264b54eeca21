"""Tables that drop columns until they fit the width of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

PLAIN_WIDTH = 100
"""Width of the output where there is no terminal."""


def console(width: int | None = None) -> Console:
    """A console as wide as the terminal; without one, plain text of 100 columns."""
    from rich.console import Console

    found = Console(highlight=False)
    own = found.width if found.is_terminal else PLAIN_WIDTH
    return Console(highlight=False, width=width or own)


def plain_table() -> Table:
    """A rich table without borders."""
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def text_of(console: Console, parts: Iterable[RenderableType]) -> str:
    """Render to text, without trailing blanks."""
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    lines = captured.get().rstrip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def first_that_fits(console: Console, tables: Sequence[Table]) -> Table:
    """The first table that fits the console's width, else the last one."""
    from rich.measure import Measurement

    unbounded = console.options.update(width=1000)
    for table in tables:
        needed = Measurement.get(console, unbounded, table).maximum
        if needed <= console.width:
            return table
    return tables[-1]
