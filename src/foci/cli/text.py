"""An audit as text: its table, as rich as the terminal is wide, and its answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from foci.errors import printable
from foci.words import counted, decimals, in_percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from foci.audits import StoredAudit, Summary
    from foci.audits.records import Alarm, Carried, Interval, RankingNumbers
    from foci.backbones.training import EpochReport
    from foci.selectors import FitEpoch

T = TypeVar("T")

PLAIN_WIDTH = 100
"""Width of the output where there is no terminal."""

COLOUR = {"good": "bold green", "part": "bold yellow", "bad": "bold red", "none": "bold"}
"""By the tone of an answer."""

QUESTION = {
    "prediction": "Prediction view: do the first tiles recover what the model says?",
    "label": "Label view: do the first tiles recover what is true?",
    "class": "Class view: do the first tiles recover the class that was asked for?",
}


def console(width: int | None = None) -> Console:
    """A console as wide as the terminal; without one, plain text of 100 columns."""
    from rich.console import Console

    found = Console(highlight=False)
    own = found.width if found.is_terminal else PLAIN_WIDTH
    return Console(highlight=False, width=width or own)


def plain_table(first: str, numbers: Iterable[str], **how: Any) -> Table:
    """A table without borders: a column of names, which may be folded, then columns of numbers.

    Args:
        first: Head of the names.
        numbers: Heads of the numbers.
        **how: Width of the names, as in :meth:`rich.table.Table.add_column`.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(first, overflow="fold", **how)
    for head in numbers:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def first_that_fits(console: Console, layouts: Iterable[tuple[Table, T]]) -> tuple[Table, T]:
    """The first table that fits the console's width, else the last one; with what it is of."""
    from rich.measure import Measurement

    unbounded = console.options.update(width=1000)
    for layout in layouts:
        if Measurement.get(console, unbounded, layout[0]).maximum <= console.width:
            break
    return layout


def text_of(console: Console, parts: Iterable[RenderableType]) -> str:
    """Render to text, without trailing blanks."""
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    lines = captured.get().rstrip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def number(value: float | None, digits: int) -> str:
    """Format a number with this many digits; a dash for None.

    >>> number(-0.001, 2), number(None, 1), number(3.14, 1)
    ('0.00', '-', '3.1')
    """
    return "-" if value is None else decimals(value, digits)


def estimate(interval: Interval | None, digits: int, ends: bool = False) -> Text:
    """Format an estimate, with the ends of its interval on the line below if ``ends``."""
    from rich.text import Text

    text = Text(number(None if interval is None else interval.estimate, digits))
    if ends and interval is not None and interval.low is not None:
        low, high = number(interval.low, digits), number(interval.high, digits)
        text.append(f"\n{low} to {high}", style="dim")
    return text


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


def epoch_line(epoch: EpochReport | FitEpoch, stage: str, score: str) -> str:
    """One epoch of a training or a fit in one line; ``score`` stands behind the losses."""
    terms = ", ".join(f"{name} {value:.3f}" for name, value in epoch.terms.items())
    width = len(str(epoch.epochs))
    return (
        f"{stage} {epoch.epoch:>{width}}/{epoch.epochs}  loss {epoch.loss:.3f} ({terms})  "
        f"val loss {epoch.val_loss:.3f}{score}{'  best' if epoch.best else ''}"
    )


def audit_text(
    audit: StoredAudit, *, summary: Summary | None = None, width: int | None = None
) -> str:
    """The alarms, the answer, the chart, what it rests on, the table, caveats, abbreviations.

    Args:
        audit: A finished audit.
        summary: Its numbers at other settings; None for its own.
        width: Columns; default is the terminal's, or 100.

    Returns:
        Plain text where the output is not a terminal.
    """
    from rich.padding import Padding
    from rich.text import Text

    from foci.audits.sources import cut_slides
    from foci.bags.cohort import line_of
    from foci.reports.text import LINE

    numbers, screen = summary or audit.summary, console(width)
    paper = audit.manifest.settings.profile == "paper"
    first = numbers.views[numbers.first_view].values()
    proven = any(one.decided and one.decided.efficiency for one in first)
    shapes = list(_shapes(paper, proven))
    table, shape = first_that_fits(screen, ((_table(numbers, shape), shape) for shape in shapes))
    name, architecture = audit.manifest.name, audit.manifest.backbone.architecture
    title = name if name == architecture else f"{name} ({architecture})"
    cut = cut_slides(audit.slides, audit.manifest.run_inputs.get("n_cap"))
    notes = [*audit.manifest.notes[len(cut) :], *numbers.notes]
    parts: tuple[RenderableType, ...] = (
        *(alarm_text(alarm) for alarm in audit.alarms),
        *(Text(printable(sentence), style="bold") for sentence in cut),
        Text(printable(title), style="bold"),
        Text(_population(numbers, "tiles kept" if cut else "full bag")),
        Padding(_first_screen(numbers, audit, screen.width), (1, 0, 0, 0)),
        *_plot(numbers, audit, screen),
        Padding(_answers(numbers, screen.width), (1, 0)),
        Text(QUESTION[numbers.first_view]),
        Padding(table, (1, 0)),
        *(Text(printable(line_of(note))) for note in notes),
        Padding(_legend(numbers, shape), (1 if notes else 0, 0, 1, 0)),
        *([] if paper else _left_out(shape, shapes[0], numbers)),
        Text(LINE, style="italic"),
    )
    return text_of(screen, parts)


@dataclass(frozen=True)
class _Column:
    """A column of the table: its head, its digits, and what the legend says of it."""

    head: str
    digits: int
    meaning: str = ""


_COLUMNS = {
    "msk": _Column(
        "MSK,\ndecided", 0, "median tiles until {sure}, on slides the model has decided"
    ),
    "deciding": _Column(
        "Deciding\ntiles",
        0,
        "median tiles that suffice, and the decision flips without them; on x % of the slides",
    ),
    "efficiency": _Column(
        "Effi-\nciency", 2, "proven minimum of deciding tiles over those of the ranking"
    ),
    "restricted": _Column("K, all\nslides", 1, "mean tiles until {sure}, {k_max} if it never is"),
    "reach": _Column("Reach", 2),
    "aukc": _Column("AUKC", 3, "area under the curve of probability over share of tiles revealed"),
    "null": _Column("Nulls\nbeaten", 0, "maps that know nothing and lose to this order"),
    "shi_native": _Column(
        "SHI vs\n{map}", 2, "share of tiles saved; negative where more are needed"
    ),
    "shi_random": _Column("SHI vs\nrandom", 2),
    "msk_cond": _Column(
        "MSK,\nreached", 1, "mean tiles until {sure}, on slides that get there; ± over seeds"
    ),
    "faithfulness": _Column(
        "Faith.\nAUC", 3, "what the model loses when the first tiles are deleted"
    ),
    "selected_only": _Column(
        "AUC\nat {kept}", 3, "AUC with only the first {kept} tiles of every slide"
    ),
}

_OF_PAPER = ("msk_cond", "reach", "aukc", "shi_native", "shi_random", "selected_only")
"""The numbers of the paper's tables, for its profile."""

_NARROW = 12


@dataclass(frozen=True)
class _Shape:
    """Layout of a table: its columns, those with intervals, and how ranking names are wrapped."""

    columns: tuple[str, ...]
    intervals: tuple[str, ...] = ()
    names: int | None = None


def _shapes(paper: bool, proven: bool) -> Iterator[_Shape]:
    """Layouts from the widest to the narrowest: first intervals go, then columns.

    Args:
        paper: Whether the numbers of the paper are shown.
        proven: Whether there are proven minima to compare with.
    """
    if paper:
        yield _Shape(_OF_PAPER, ("shi_native", "shi_random"))
        yield _Shape(_OF_PAPER[:4])
        return
    columns = tuple(n for n in _COLUMNS if n != "msk_cond" and (proven or n != "efficiency"))
    with_ends = ("msk", "deciding", "efficiency", "restricted", "shi_native", "shi_random")
    intervals = tuple(name for name in with_ends if name in columns)
    for pair in ((), ("shi_native", "shi_random"), ("efficiency", "restricted"), with_ends):
        intervals = tuple(name for name in intervals if name not in pair)
        yield _Shape(columns, intervals)
    yield _Shape(columns, names=_NARROW)
    for gone in (
        "aukc", "selected_only", "shi_random", "faithfulness", "shi_native", "null", "reach",
    ):  # fmt: skip
        columns = tuple(name for name in columns if name != gone)
        yield _Shape(columns, names=_NARROW)


def _words(summary: Summary) -> dict[str, Any]:
    """What stands for the names in braces in heads and meanings of columns."""
    from foci.audits.settings import KEPT

    sure = f"{summary.kappa:g} sure"
    return {"kept": KEPT, "map": summary.map, "sure": sure, "k_max": summary.k_max}


def _titles(summary: Summary) -> dict[str, str]:
    """Heads of all columns in one line each."""
    heads = {name: column.head.format(**_words(summary)) for name, column in _COLUMNS.items()}
    return {name: head.replace("-\n", "").replace("\n", " ") for name, head in heads.items()}


def _table(summary: Summary, shape: _Shape) -> Table:
    """One row per ranking; columns with intervals show them below the estimate."""
    from rich.text import Text

    least = min(_NARROW, max(map(len, summary.rankings)))
    heads = [_COLUMNS[name].head.format(**_words(summary)) for name in shape.columns]
    table = plain_table("ranking", heads, min_width=least, max_width=shape.names)
    for ranking in summary.rankings:
        numbers = summary.views[summary.first_view][ranking]
        lines = wrap(ranking, shape.names) if shape.names else [ranking]  # at hyphens
        table.add_row(Text("\n".join(lines)), *_cells(numbers, shape, summary.k_max))
    return table


def _cells(numbers: RankingNumbers, shape: _Shape, k_max: int) -> Iterator[Text]:
    from rich.text import Text

    from foci.audits.answers import in_words
    from foci.audits.tables import seed_std

    for key in shape.columns:
        digits, ends = _COLUMNS[key].digits, key in shape.intervals
        if key == "selected_only":
            yield Text(number(getattr(numbers.selected_only, "auc", None), digits))
        elif key == "null":
            null = numbers.null
            yield Text("-" if null is None else f"{null.beaten}/{null.n_maps}")
        elif key == "msk_cond":
            spread = seed_std(numbers.msk_cond_seeds)
            after = "" if spread is None else f" ± {number(spread, digits)}"
            yield Text(f"{number(numbers.msk_cond.estimate, digits)}{after}")
        elif key == "deciding":
            share = getattr(numbers.decided, "decisive_share", None)
            count = number(getattr(numbers.decided, "deciding", None), 1).removesuffix(".0")
            below = "" if share is None or not ends else f"\non {in_percent(share)}"
            yield Text.assemble("none" if share == 0 else count, (below, "dim"))
        elif key == "efficiency":
            yield estimate(getattr(numbers.decided, key, None), digits, ends)
        elif key != "msk":
            yield estimate(getattr(numbers, key), digits, ends)
        elif (quartiles := getattr(numbers.decided, key, None)) is None:
            yield Text("-")
        else:
            low, median, high = (
                in_words(count, k_max).replace("more than ", ">")
                for count in (quartiles.low, quartiles.median, quartiles.high)
            )
            yield Text.assemble(median, (f"\n{low} to {high}" if ends else "", "dim"))


def _left_out(shape: _Shape, widest: _Shape, summary: Summary) -> list[Text]:
    """What a wider terminal would show, in one line; none if everything is there."""
    from rich.text import Text

    title = _titles(summary)
    names = [title[name] for name in widest.columns if name not in shape.columns]
    dropped = [n for n in widest.intervals if n in shape.columns and n not in shape.intervals]
    if dropped:
        of = f" of {' and '.join(title[n] for n in dropped)}" if shape.intervals else ""
        names.append(f"intervals{of}")
    if not names:
        return []
    where = "see the report and tables/rankings.csv"
    return [Text(f"not shown at this width: {', '.join(names)}; {where}", style="dim")]


def _population(summary: Summary, tiles: str) -> str:
    parts = [
        f"{counted(summary.n_slides, 'slide')} of {counted(summary.n_cases, 'patient')}",
        f"{summary.n_skipped or 'none'} skipped in the whole cohort",
    ]
    from foci.reports.text import performance

    full = summary.full_bag
    if full.accuracy is not None:
        parts.append(f"{tiles}: AUC {number(full.auc, 3)}, accuracy {number(full.accuracy, 3)}")
    parts += [f"{name} {text}" for name, text in performance(full)]
    return ", ".join(parts)


def _legend(summary: Summary, shape: _Shape) -> Table:
    """Explain the columns that are shown."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False, style="dim")
    for name, title in _titles(summary).items():
        if name in shape.columns and _COLUMNS[name].meaning:
            meaning = _COLUMNS[name].meaning.format(**_words(summary))
            table.add_row(title.partition(" vs ")[0], meaning)
    if shape.intervals:
        level = in_percent(summary.level)
        table.add_row("x to y", f"quartiles of a median, {level} interval of a mean")
    return table


def _first_screen(summary: Summary, audit: StoredAudit, width: int) -> Text:
    """The answer as the report gives it: what has to be known first, one word, counts."""
    from rich.text import Text

    from foci.reports.first_screen import QUESTION, first_screen

    first = first_screen(summary, audit.manifest)
    text = Text()
    for bold, rest in first.notices:
        text.append(f"{bold} ", style="bold yellow").append(f"{rest}\n")
    text.append(f"{QUESTION} ", style="bold")
    text.append(f"{first.word}. {first.only}".rstrip() + "\n", style=COLOUR[first.tone])
    for sentence in (*first.sentences, f"Carry: {first.definition}"):
        text.append("\n".join([*wrap(sentence, width, break_on_hyphens=False), ""]))
    text.rstrip()
    return text


_HEIGHTS = "·▁▂▃▄▅▆▇█"


def carried_plot(chart: Carried, map_called: str) -> Text:
    """The chart of the report in one line of blocks per order, four per doubling of K.

    A block is as high as the share of slides whose decision the first K tiles carry; a dot is none.
    """
    from rich.text import Text

    from foci.words import PLAIN_NAMES, colour_of

    last, marked = chart.ks[-1], min(32, chart.ks[-1])
    places = [2 ** (i / 4) for i in range(int(4 * math.log2(last) + 1e-9) + 1)]
    scale = "".join(f"{2**i:<4}" for i in range(int(math.log2(last)) + 1))
    names = {chart.map: map_called, "random": PLAIN_NAMES["random"]}
    text = Text("Share of slides whose decision the first K tiles carry\n", style="bold")
    for name, line in chart.lines.items():
        called = names.get(name, "best order found")
        blocks = "".join(_HEIGHTS[math.ceil(8 * line.at(chart.ks, int(k)))] for k in places)
        read = f"{in_percent(line.at(chart.ks, marked))} at {marked}"
        text.append(f"{called[:18]:<18} ").append(blocks, style=colour_of(name))
        text.append(f"  {read}\n")
    text.append(f"{'K':<18} {scale.rstrip()}", style="dim")
    return text


def _plot(summary: Summary, audit: StoredAudit, screen: Console) -> list[RenderableType]:
    """The chart, where the terminal has the signs and the width for it."""
    from rich.padding import Padding

    from foci.reports.text import plain_name

    can = screen.is_terminal and screen.encoding.lower().startswith("utf") and screen.width >= 70
    if not can or summary.carried is None:
        return []
    called = plain_name(summary.map, audit.manifest)
    return [Padding(carried_plot(summary.carried, called), (1, 0, 0, 0))]


def _answers(summary: Summary, width: int) -> Text:
    """Every question with its answer, and its sentences below it, indented and wrapped."""
    from rich.text import Text

    from foci.reports.text import MAP, ORDER, TILES, tone_of

    text, answers = Text(), summary.answers
    if summary.first_view == "label":
        text.append("The answers follow the model's prediction, the table below the label.\n")
    for question, one in ((MAP, answers.map), (TILES, answers.tiles), (ORDER, answers.order)):
        text.append(f"{question} ", style="bold")
        short = one.short if one is answers.order else one.answer
        text.append(f"{short}\n", style=COLOUR[tone_of(one.answer)])
        for sentence in one.sentences:
            lines = wrap(
                sentence,
                width,
                initial_indent="  ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
            text.append("\n".join([*lines, ""]))
    if answers.sensitive:
        text.append("The answers depend on the threshold: see the report.\n")
    text.rstrip()
    return text


def show_truth(audit: StoredAudit) -> None:
    """Print how the rankings compare with the truth, where there is one."""
    truth = audit.manifest.truth
    if truth is None:
        return
    slides = f"{counted(truth.n_slides, 'slide')} of {counted(truth.n_cases, 'patient')}"
    left_out = [
        f"{n} {why}"
        for n, why in (
            (truth.n_unmarked, "without annotation"),
            (truth.n_without, "annotated without a true tile"),
        )
        if n
    ]
    more = f" ({', '.join(left_out)} left out)" if left_out else ""
    lines = [f"Against the truth: {truth.what} {slides}{more}."]
    for name, own in truth.rankings.items():
        among = ", ".join(
            f"{what} {in_percent(found.estimate or 0)} (chance {in_percent(found.chance or 0)})"
            for what, found in (("first 8", own.precision8), ("deciding tiles", own.deciding))
            if found is not None
        )
        precision = own.average_precision
        levels = [decimals(value or 0, 2) for value in (precision.estimate, precision.chance)]
        lines.append(
            f"  {name}: true tiles among the {among}; average precision {levels[0]} ({levels[1]})"
        )
    typer.echo("\n".join(printable(line) for line in lines) + "\n")
