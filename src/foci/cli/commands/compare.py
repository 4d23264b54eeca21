"""``foci compare``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foci.cli.help import console, first_that_fits, plain_table, text_of
from foci.cli.options import AcceptChanged
from foci.cli.terminal import starting
from foci.cli.text import COLOUR, alarm_text, estimate, number
from foci.errors import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from foci.audits.compare import Comparison, ComparisonRow

LEGEND = (
    "K: mean number of tiles over all slides, the largest count where the model is never sure "
    "enough. SHI: share of tiles saved by the selector (by each ranking, where it has its own row)."
)


def compare(
    folders: Annotated[list[Path], typer.Argument(help="Two or more folders of foci audit.")],
    out: Annotated[
        Path | None, typer.Option(help="HTML page to write; compare.csv is written beside it.")
    ] = None,
    accept_changed: AcceptChanged = False,
) -> None:
    """Compare audits side by side: tiles per ranking, headroom, faithfulness, answers."""
    starting("opening the audits")
    from foci.audits import StoredAudit
    from foci.audits.compare import compare as put_together
    from foci.cli.terminal import announce_changed, page, say_next, say_pages
    from foci.files.atomic import write_whole

    file = page(out)
    audits = [StoredAudit.load(folder, accept_changed=accept_changed) for folder in folders]
    for audit in audits:
        announce_changed(audit)
    found = put_together(audits)
    show(found)
    if file is not None:
        from foci.reports import write_comparison

        table = file.with_name("compare.csv")
        write_comparison(audits, file)
        write_whole(table, found.to_csv())
        typer.echo(f"wrote {file} and {table}")
        say_pages(file)
    say_next(["foci", "view", folders[0]])


def show(
    comparison: Comparison, echo: Callable[[str], Any] = typer.echo, *, width: int | None = None
) -> None:
    """Print the alarms, the numbers, the answers, and notes on what makes the audits incomparable.

    Args:
        comparison: The audits.
        echo: Takes the text; plain where the output is not a terminal.
        width: Columns; default is the terminal's, or 100.
    """
    from rich.padding import Padding
    from rich.text import Text

    from foci.reports.text import LINE

    screen = console(width)
    shown = ((True, True), (True, False), (False, True), (False, False))
    tables = [_table(comparison, ends, faithful) for ends, faithful in shown]
    tables += [_by_ranking(comparison, shape) for shape in _SHAPES]
    chosen = first_that_fits(screen, tables)
    left_out = _LEFT_OUT[tables.index(chosen)]
    parts: tuple[RenderableType, ...] = (
        *(alarm_text(alarm, row.name) for row in comparison.rows for alarm in row.alarms),
        Text("Prediction view: do the first tiles recover what the model says?"),
        Padding(chosen, (1, 0)),
        Text(LEGEND, style="dim"),
        *([Text(f"not shown at this width: {left_out}; see --out", style="dim")] * bool(left_out)),
        Padding(_answers(comparison), (1, 0, int(bool(comparison.notes)), 0)),
        *(Text(printable(f"note: {note}")) for note in comparison.notes),
        Text(f"\n{LINE}", style="italic"),
    )
    echo(text_of(screen, parts))


def _table(comparison: Comparison, ends: bool, faithful: bool) -> Table:
    """One row per audit, rankings across."""
    from rich.text import Text

    table = plain_table()
    table.add_column("model", overflow="fold", max_width=16)
    heads = ["AUC", *(f"K\n{ranking}" for ranking in comparison.rankings)]
    heads += ["SHI vs\nnative", "SHI vs\nrandom"]
    heads += ["Faith.\nnative", "Faith.\nselector"] * faithful
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for row in comparison.rows:
        table.add_row(Text(printable(row.name)), *_cells(row, comparison.rankings, ends, faithful))
    return table


def _cells(
    row: ComparisonRow, rankings: tuple[str, ...], ends: bool, faithful: bool
) -> Iterator[Text]:
    from rich.text import Text

    yield Text(number(row.summary.full_bag.auc, 3))
    for ranking in rankings:
        yield estimate(row.interval("restricted", ranking), 1)
    for base in ("native", "random"):
        yield estimate(row.interval(f"shi_{base}", "selector"), 2, ends)
    for ranking in ("native", "selector") if faithful else ():
        yield estimate(row.interval("faithfulness", ranking), 3)


_MEASURES = {
    "restricted": ("K", 1),
    "shi_native": ("SHI vs\nnative", 2),
    "shi_random": ("SHI vs\nrandom", 2),
    "faithfulness": ("Faith.\nAUC", 3),
}
_SHAPES = (tuple(_MEASURES), ("restricted", "shi_native", "shi_random"), ("restricted",))
"""Measures of a ranking, the most first."""


_LEFT_OUT = (
    "",
    "Faithfulness",
    "intervals",
    "intervals, Faithfulness",
    "intervals",
    "intervals, Faithfulness",
    "intervals, SHI, Faithfulness",
)
"""What each layout of :func:`show` leaves out, from the widest to the narrowest."""


def _by_ranking(comparison: Comparison, measures: tuple[str, ...]) -> Table:
    """One row per audit, and below it one row per ranking."""
    from rich.text import Text

    table = plain_table()
    table.add_column("model,\n  ranking", overflow="fold", max_width=22)
    table.add_column("AUC", justify="right", no_wrap=True)
    for measure in measures:
        table.add_column(_MEASURES[measure][0], justify="right", no_wrap=True)
    for row in comparison.rows:
        table.add_row(Text(printable(row.name)), Text(number(row.summary.full_bag.auc, 3)))
        for ranking in comparison.rankings:
            if row.numbers(ranking) is not None:
                cells = (
                    estimate(row.interval(measure, ranking), _MEASURES[measure][1])
                    for measure in measures
                )
                table.add_row(Text(f"  {ranking}"), "", *cells)
    return table


def _answers(comparison: Comparison) -> Table:
    """One row per audit: the answers to its three questions."""
    from rich.text import Text

    from foci.audits.compare import ANSWERS
    from foci.reports.text import tone_of

    table = plain_table()
    table.add_column("model", overflow="fold", max_width=22)
    for head in ANSWERS.values():
        table.add_column(head, overflow="fold")
    for row in comparison.rows:
        given = [row.answer(question) for question in ANSWERS]
        cells = (Text(answer or "-", style=COLOUR[tone_of(answer)]) for answer in given)
        table.add_row(Text(printable(row.name)), *cells)
    return table
