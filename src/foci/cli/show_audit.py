"""Print the result of an audit as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import typer

from foci.cli.answers_text import answers_text
from foci.cli.column_fitting import console, first_that_fits, plain_table, text_of
from foci.cli.numbers_text import estimate, median_text, number
from foci.errors import printable
from foci.words.rounding import in_percent

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from foci.audits import StoredAudit, Summary
    from foci.audits.analysis.summary import RankingNumbers
    from foci.audits.records import Alarm

QUESTION = {
    "prediction": "Prediction view: do the first tiles recover what the model says?",
    "label": "Label view: do the first tiles recover what is true?",
}


def show(
    audit: StoredAudit,
    echo: Callable[[str], Any] = typer.echo,
    *,
    summary: Summary | None = None,
    width: int | None = None,
) -> None:
    """Print the alarms, the table of rankings, the answers and the caveats.

    Args:
        audit: A finished audit.
        echo: Takes the text; plain where the output is not a terminal.
        summary: Its numbers at other settings; None for its own.
        width: Columns; default is the terminal's, or 100.
    """
    from rich.padding import Padding
    from rich.text import Text

    from foci.bags.cohort.patient_overlap import line_of
    from foci.reports.text.wording import LINE

    numbers = summary or audit.summary
    screen = console(width)
    tables = [_table(numbers, shape) for shape in _SHAPES]
    chosen = first_that_fits(screen, tables)
    shape = _SHAPES[tables.index(chosen)]
    notes = [*audit.manifest.notes, *numbers.notes]
    parts: tuple[RenderableType, ...] = (
        *(alarm_text(alarm) for alarm in audit.alarms),
        Text(printable(_title(audit)), style="bold"),
        Text(_population(numbers)),
        Text(f"\n{QUESTION[numbers.first_view]}"),
        Padding(chosen, (1, 0)),
        _legend(numbers, shape),
        *_left_out(shape),
        Padding(answers_text(numbers.answers, screen.width), (1, 0)),
        *(Text(printable(line_of(note))) for note in notes),
        Text("\n" * bool(notes) + LINE, style="italic"),
    )
    echo(text_of(screen, parts))


def alarm_text(alarm: Alarm, of: str = "") -> Text:
    r"""One alarm in red, with the name of the audit it belongs to if there are several.

    >>> from foci.audits.records import Alarm
    >>> alarm_text(Alarm(kind="zero tiles", sentence="Half is zero.")).plain
    'ALARM, zero tiles: Half is zero.\n'
    """
    from rich.text import Text

    text = Text(f"ALARM, {alarm.kind}{f', {of}' if of else ''}: ", style="bold red")
    text.append(f"{alarm.sentence}\n", style="not bold default")
    return text


@dataclass(frozen=True)
class _Shape:
    """Layout of a table: its columns, those with intervals, and how ranking names are wrapped."""

    columns: tuple[str, ...]
    intervals: tuple[str, ...] = ()
    names: int | None = None


_COLUMNS = {
    "msk": ("MSK,\ndecided", 0),
    "decisive": ("Decisive\nK", 0),
    "restricted": ("K, all\nslides", 1),
    "reach": ("Reach", 2),
    "aukc": ("AUKC", 3),
    "shi_native": ("SHI vs\nnative", 2),
    "shi_random": ("SHI vs\nrandom", 2),
    "faithfulness": ("Faith.\nAUC", 3),
    "selected_only": ("AUC\nat {kept}", 3),
}
_EVERY, _NARROW = tuple(_COLUMNS), 12


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in _EVERY if name not in names)


_SHAPES = (
    _Shape(_EVERY, ("msk", "decisive", "restricted", "shi_native", "shi_random")),
    _Shape(_EVERY, ("msk", "decisive", "restricted")),
    _Shape(_EVERY),
    _Shape(_EVERY, names=_NARROW),
    _Shape(_without("aukc"), names=_NARROW),
    _Shape(_without("aukc", "selected_only"), names=_NARROW),
    _Shape(_without("aukc", "selected_only", "shi_random"), names=_NARROW),
    _Shape(_EVERY[:4], names=_NARROW),
    _Shape(_EVERY[:3], names=_NARROW),
)
"""Layouts from the widest to the narrowest."""


def _left_out(shape: _Shape) -> list[Text]:
    """What a wider terminal would show, in one line; none if everything is there."""
    from rich.text import Text

    from foci.audits.compute.counts import KEPT

    title = {n: _COLUMNS[n][0].format(kept=KEPT).replace("\n", " ") for n in _EVERY}
    names = [title[name] for name in _EVERY if name not in shape.columns]
    dropped = [n for n in _SHAPES[0].intervals if n in shape.columns and n not in shape.intervals]
    if dropped:
        of = f" of {' and '.join(title[n] for n in dropped)}" if shape.intervals else ""
        names.append(f"intervals{of}")
    if not names:
        return []
    where = "see the report and tables/rankings.csv"
    return [Text(f"not shown at this width: {', '.join(names)}; {where}", style="dim")]


def _title(audit: StoredAudit) -> str:
    name, architecture = audit.manifest.name, audit.manifest.backbone.architecture
    return name if name == architecture else f"{name} ({architecture})"


def _population(summary: Summary) -> str:
    from foci.words.plural import counted

    parts = [
        f"{counted(summary.n_slides, 'slide')} of {counted(summary.n_cases, 'patient')}",
        f"{summary.n_skipped or 'none'} skipped in the whole cohort",
    ]
    full = summary.full_bag
    if full.accuracy is not None:
        parts.append(f"full bag: AUC {number(full.auc, 3)}, accuracy {number(full.accuracy, 3)}")
    return ", ".join(parts)


def _table(summary: Summary, shape: _Shape) -> Table:
    """One row per ranking; columns with intervals show them below the estimate."""
    from rich.text import Text

    from foci.audits.compute.counts import KEPT

    table = plain_table()
    longest = max(map(len, summary.rankings))
    least = min(longest, _NARROW)
    table.add_column("ranking", overflow="fold", min_width=least, max_width=shape.names)
    for name in shape.columns:
        table.add_column(_COLUMNS[name][0].format(kept=KEPT), justify="right", no_wrap=True)
    for ranking in summary.rankings:
        numbers = summary.views[summary.first_view][ranking]
        lines = wrap(ranking, shape.names) if shape.names else [ranking]  # at hyphens
        table.add_row(Text("\n".join(lines)), *_cells(numbers, shape, summary.k_max))
    return table


def _cells(numbers: RankingNumbers, shape: _Shape, k_max: int) -> Iterator[Text]:
    from rich.text import Text

    for key in shape.columns:
        digits = _COLUMNS[key][1]
        if key in ("msk", "decisive"):
            yield median_text(getattr(numbers.decided, key, None), k_max, key in shape.intervals)
        elif key == "selected_only":
            yield Text(number(getattr(numbers.selected_only, "auc", None), digits))
        else:
            yield estimate(getattr(numbers, key), digits, key in shape.intervals)


def _legend(summary: Summary, shape: _Shape) -> Table:
    """Explain the columns that are shown."""
    from rich.table import Table

    from foci.audits.compute.counts import KEPT

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False, style="dim")
    kappa, k_max = summary.kappa, summary.k_max
    meanings = (
        (
            "msk",
            "MSK, decided",
            f"median tiles until {kappa:g} sure, on slides the model has decided",
        ),
        (
            "decisive",
            "Decisive K",
            "median tiles that suffice, and the decision flips without them",
        ),
        ("restricted", "K, all slides", f"mean tiles until {kappa:g} sure, {k_max} if it never is"),
        ("aukc", "AUKC", "area under the curve of probability over share of tiles revealed"),
        ("shi_native", "SHI", "share of tiles saved; negative where more are needed"),
        ("faithfulness", "Faith. AUC", "what the model loses when the first tiles are deleted"),
        ("selected_only", f"AUC at {KEPT}", f"AUC with only the first {KEPT} tiles of every slide"),
    )
    for column, title, meaning in meanings:
        if column in shape.columns:
            table.add_row(title, meaning)
    if shape.intervals:
        table.add_row(
            "x to y", f"quartiles of a median, {in_percent(summary.level)} interval of a mean"
        )
    return table
