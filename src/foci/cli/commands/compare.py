"""``foci compare``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foci.cli.options import AcceptChanged
from foci.cli.terminal import open_audit, page, say_next, say_pages, starting
from foci.cli.text import (
    COLOUR,
    QUESTION,
    alarm_text,
    console,
    estimate,
    first_that_fits,
    number,
    plain_table,
    text_of,
)
from foci.errors import printable
from foci.words import in_percent

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from foci.audits.compare import Comparison, MapAgreement

LEGEND = (
    "K: mean number of tiles over all slides, the largest count where the model is never sure "
    "enough. SHI: share of tiles saved by the selector (by each ranking, where it has its own "
    "row). Effic.: proven minimum of deciding tiles over those of the ranking, where it is known."
)


def compare(
    folders: Annotated[list[Path], typer.Argument(help="Two or more folders of foci audit.")],
    out: Annotated[
        Path | None, typer.Option(help="HTML page to write; CSV files are written beside it.")
    ] = None,
    accept_changed: AcceptChanged = False,
) -> None:
    """Compare audits side by side: tiles per ranking, headroom, faithfulness, answers."""
    starting("opening the audits")
    from foci.audits.compare import agreement_csv
    from foci.audits.compare import compare as compared

    file = page(out)
    audits = [open_audit(folder, accept_changed) for folder in folders]
    comparison = compared(audits)
    typer.echo(comparison_text(comparison))
    if file is not None:
        from foci.files.atomic import write_whole
        from foci.reports import write_comparison

        table, maps = file.with_name("compare.csv"), file.with_name("compare-maps.csv")
        write_comparison(audits, file, agreement=comparison.agreement)
        write_whole(table, comparison.to_csv())
        if comparison.agreement:
            write_whole(maps, agreement_csv(comparison.agreement))
        also = f", {table} and {maps}" if comparison.agreement else f" and {table}"
        typer.echo(f"wrote {file}{also}")
        say_pages(file)
    say_next(["foci", "view", folders[0]])


def comparison_text(comparison: Comparison, *, width: int | None = None) -> str:
    """Alarms, answers, notes on what makes the audits incomparable, then the numbers.

    The text is as wide as the terminal, or 100 columns, and plain where there is no terminal.
    """
    from rich.padding import Padding
    from rich.text import Text

    from foci.reports.text import LINE

    screen = console(width)
    table, left_out = first_that_fits(screen, _layouts(comparison))
    parts: tuple[RenderableType, ...] = (
        *(alarm_text(alarm, row.name) for row in comparison.rows for alarm in row.alarms),
        Padding(_answers(comparison), (0, 0, 1, 0)),
        *(Text(printable(_agreement(pair))) for pair in comparison.agreement),
        *(Text(printable(f"note: {note}")) for note in comparison.notes),
        *([Text("")] * bool(comparison.notes or comparison.agreement)),
        Text(QUESTION["prediction"]),
        Padding(table, (1, 0)),
        Text(LEGEND, style="dim"),
        *([Text(f"not shown at this width: {left_out}; see --out", style="dim")] * bool(left_out)),
        Text(f"\n{LINE}", style="italic"),
    )
    return text_of(screen, parts)


def _agreement(pair: MapAgreement) -> str:
    """How far two maps agree, in one line."""
    shares = "; ".join(
        f"first {k} tiles {in_percent(shared.estimate)} in common (chance {in_percent(chance)})"
        for k, shared, chance in (
            (8, pair.shared8, pair.chance8),
            (32, pair.shared32, pair.chance32),
        )
        if shared.estimate is not None and chance is not None
    )
    said = f"maps of {pair.first} and {pair.second}: {shares or 'slides have too few tiles'}"
    return (
        f"{said}; rank correlation {number(pair.spearman.estimate, 2)}; {len(pair.slides)} slides"
    )


def _layouts(comparison: Comparison) -> Iterator[tuple[Table, str]]:
    """Tables from the widest to the narrowest, each with what it leaves out."""
    yield _by_audit(comparison, ends=True, faithful=True), ""
    yield _by_audit(comparison, ends=True, faithful=False), "Faithfulness"
    yield _by_audit(comparison, ends=False, faithful=True), "intervals"
    yield _by_audit(comparison, ends=False, faithful=False), "intervals, Faithfulness"
    every = tuple(m for m in _MEASURES if m != "efficiency" or comparison.efficient)
    yield _by_ranking(comparison, every), "intervals"
    yield _by_ranking(comparison, every[:-1]), "intervals, Faithfulness"
    yield _by_ranking(comparison, every[:-3]), "intervals, SHI, Faithfulness"


def _by_audit(comparison: Comparison, *, ends: bool, faithful: bool) -> Table:
    """One row per audit, rankings across."""
    from rich.text import Text

    rankings, base = comparison.rankings, comparison.map
    heads = ["AUC", *(f"K\n{ranking}" for ranking in rankings), f"SHI vs\n{base}", "SHI vs\nrandom"]
    heads += [f"Effic.\n{ranking}" for ranking in comparison.efficient]
    heads += [f"Faith.\n{base}", "Faith.\nselector"] if faithful else []
    table = plain_table("model", heads, max_width=16)
    for row in comparison.rows:
        shi = [row.interval(key, "selector") for key in ("shi_native", "shi_random")]
        last = (row.summary.map, "selector") if faithful else ()
        table.add_row(
            Text(printable(row.name)),
            number(row.summary.full_bag.auc, 3),
            *(estimate(row.interval("restricted", ranking), 1) for ranking in rankings),
            *(estimate(interval, 2, ends) for interval in shi),
            *(estimate(row.interval("efficiency", name), 2, ends) for name in comparison.efficient),
            *(estimate(row.interval("faithfulness", ranking), 3) for ranking in last),
        )
    return table


_MEASURES = {
    "restricted": ("K", 1),
    "efficiency": ("Effic.", 2),
    "shi_native": ("SHI vs\n{map}", 2),
    "shi_random": ("SHI vs\nrandom", 2),
    "faithfulness": ("Faith.\nAUC", 3),
}
"""Head and digits of the measures of a ranking."""


def _by_ranking(comparison: Comparison, measures: Sequence[str]) -> Table:
    """One row per audit, and below it one row per ranking."""
    from rich.text import Text

    heads = ["AUC", *(_MEASURES[one][0].format(map=comparison.map) for one in measures)]
    table = plain_table("model,\n  ranking", heads, max_width=22)
    for row in comparison.rows:
        table.add_row(Text(printable(row.name)), number(row.summary.full_bag.auc, 3))
        for ranking in comparison.rankings:
            if row.numbers(ranking) is not None:
                cells: Iterator[Text] = (
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

    table = plain_table("model", (), max_width=22)
    for head in ANSWERS.values():
        table.add_column(head, overflow="fold")
    for row in comparison.rows:
        own = row.summary.answers
        ruled = (own.map.answer, own.tiles.answer, own.order.answer)
        cells = (
            Text(row.answer(question) or "-", style=COLOUR[tone_of(answer)])
            for question, answer in zip(ANSWERS, ruled, strict=True)
        )
        table.add_row(Text(printable(row.name)), *cells)
    return table
