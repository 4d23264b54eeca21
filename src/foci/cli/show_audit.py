"""What an audit found, on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from foci.cli.fitting import console, first_that_fits, plain_table, text_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from foci.audits import Audit

QUESTION = {
    "prediction": "Prediction view: do the first tiles recover what the model says?",
    "label": "Label view: do the first tiles recover what is true?",
}
COLOUR = {
    "headroom": "bold green",
    "saturated": "bold yellow",
    "conflict": "bold red",
    "uninformative native ranking": "bold magenta",
}


def show(
    audit: Audit, echo: Callable[[str], Any] = typer.echo, *, width: int | None = None
) -> None:
    """Print one table, the verdict, and what has to be known beside them.

    Args:
        audit: A finished audit.
        echo: Takes the text; plain where the output is not a terminal.
        width: Columns; default is the terminal's, or 100.
    """
    from rich.padding import Padding
    from rich.text import Text

    from foci.reports.wording import LINE

    summary = audit.summary
    screen = console(width)
    tables = [_table(summary, intervals) for intervals in (_ALL, _FEW, ())]
    notes = [*audit.manifest.get("notes", []), *summary["notes"]]
    parts: tuple[RenderableType, ...] = (
        Text(_title(audit), style="bold"),
        Text(_population(summary)),
        Text(f"\n{QUESTION[summary['first_view']]}"),
        Padding(first_that_fits(screen, tables), (1, 0)),
        _legend(summary),
        Padding(_verdict(summary["verdict"]), (1, 0)),
        *(Text(f"note: {note}") for note in notes),
        Text("\n" * bool(notes) + LINE, style="italic"),
    )
    echo(text_of(screen, parts))


_ALL = ("msk_cond", "restricted", "shi_native", "shi_random")
_FEW = ("msk_cond", "restricted")


def _title(audit: Audit) -> str:
    name, architecture = audit.manifest["name"], audit.manifest["backbone"]["architecture"]
    return name if name == architecture else f"{name} ({architecture})"


def _population(summary: Mapping[str, Any]) -> str:
    parts = [
        f"{_plural(summary['n_slides'], 'slide')} of {_plural(summary['n_cases'], 'patient')}",
        f"{summary['n_skipped'] or 'none'} skipped",
    ]
    full = summary["full_bag"]
    if full["accuracy"] is not None:
        parts.append(f"full bag: AUC {number(full['auc'], 3)}, accuracy {full['accuracy']:.3f}")
    return ", ".join(parts)


def _table(summary: Mapping[str, Any], intervals: tuple[str, ...]) -> Table:
    """One row per ranking; below an estimate its interval, for the columns that are named."""
    from rich.text import Text

    from foci.audits.selected import KEPT

    table = plain_table()
    table.add_column("ranking", overflow="fold")
    for head in ("MSK", "K, all\nslides", "Reach", "AUKC", "SHI vs\nnative", "SHI vs\nrandom",
                 "Faith.\nAUC", f"AUC\nat {KEPT}"):  # fmt: skip
        table.add_column(head, justify="right", no_wrap=True)
    for ranking in summary["rankings"]:
        table.add_row(
            Text(ranking), *_cells(summary["views"][summary["first_view"]][ranking], intervals)
        )
    return table


def _cells(numbers: Mapping[str, Any], intervals: tuple[str, ...]) -> Iterator[Text]:
    columns = (("msk_cond", 1), ("restricted", 1), ("reach", 2), ("aukc", 3), ("shi_native", 2),
               ("shi_random", 2), ("faithfulness", 3))  # fmt: skip
    for key, digits in columns:
        yield estimate(numbers[key], digits, key in intervals)
    yield estimate({"estimate": (numbers["selected_only"] or {}).get("auc")}, 3)


def estimate(interval: Mapping[str, Any] | None, digits: int, ends: bool = False) -> Text:
    """An estimate, with the ends of its interval on a line below if they are wanted."""
    from rich.text import Text

    text = Text(number((interval or {}).get("estimate"), digits))
    if ends and interval is not None and interval["low"] is not None:
        low, high = number(interval["low"], digits), number(interval["high"], digits)
        text.append(f"\n{low} to {high}", style="dim")
    return text


def number(value: float | None, digits: int) -> str:
    """So many digits; a dash where there is no number.

    >>> number(-0.001, 2), number(None, 1), number(3.14, 1)
    ('0.00', '-', '3.1')
    """
    return "-" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"


def _legend(summary: Mapping[str, Any]) -> Table:
    from rich.table import Table

    from foci.audits.selected import KEPT

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False, style="dim")
    kappa, k_max = summary["kappa"], summary["k_max"]
    table.add_row("MSK", f"tiles until the model is {kappa:g} sure, where it gets there (Reach)")
    table.add_row("K, all slides", f"the same over all slides, {k_max} where it never is")
    table.add_row("AUKC", "area under the probability over the share of tiles revealed")
    table.add_row("SHI", "share of tiles saved; negative where more are needed")
    table.add_row("Faith. AUC", "what the model loses when the first tiles are deleted")
    table.add_row(f"AUC at {KEPT}", f"with only the first {KEPT} tiles of every slide")
    table.add_row("x to y", f"{summary['level']:.0%} interval, patients resampled")
    return table


def _verdict(verdict: Mapping[str, Any] | None) -> Text:
    from rich.text import Text

    if verdict is None:
        return Text("Verdict: none (see the notes)", style="bold")
    name = verdict["verdict"]
    return Text.assemble("Verdict: ", (name, COLOUR[name]), "\n" + verdict["sentence"])


def _plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
