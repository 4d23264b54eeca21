"""The three answers of an audit as coloured text, wrapped to the width of the terminal."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import typer

from foci.cli.help import console, first_that_fits, plain_table, text_of
from foci.errors import printable
from foci.progress import duration
from foci.words import counted, decimals, in_percent

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from foci.audits import StoredAudit, Summary
    from foci.audits.records import Alarm, Interval
    from foci.audits.summary import Answers, CountQuartiles, RankingNumbers
    from foci.backbones.training import EpochReport
    from foci.backbones.training.run import TrainingConfiguration
    from foci.bags import Cohort

_LOG = logging.getLogger(__name__)


COLOUR = {"good": "bold green", "part": "bold yellow", "bad": "bold red", "none": "bold"}
"""By the tone of an answer."""


def answers_text(told: Answers, width: int) -> Text:
    """Every question with its answer, and its sentences below it, indented."""
    from rich.text import Text

    from foci.reports.text import MAP, ORDER, TILES, tone_of

    text = Text()
    for question, one in ((MAP, told.map), (TILES, told.tiles), (ORDER, told.order)):
        text.append(f"{question} ", style="bold")
        text.append(f"{one.answer}\n", style=COLOUR[tone_of(one.answer)])
        text.append("".join(f"{_indented(line, width)}\n" for line in one.sentences))
    if told.sensitive:
        text.append("The answers depend on the threshold: see the report.\n")
    text.rstrip()
    return text


def _indented(sentence: str, width: int) -> str:
    """Wrap a sentence; its further lines are indented more than its first."""
    lines = wrap(
        sentence, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )
    return "\n".join(lines)


# Numbers of an audit as text for the terminal: estimates, medians, with their ends.


def median_text(quartiles: CountQuartiles | None, k_max: int, ends: bool) -> Text:
    """Format a median, with the quartiles on the line below if ``ends``."""
    from rich.text import Text

    from foci.audits.sentences import in_words

    if quartiles is None:
        return Text("-")
    text = Text(in_words(quartiles.median, k_max).replace("more than ", ">"))
    if ends:
        low, high = (
            in_words(end, k_max).replace("more than ", ">")
            for end in (quartiles.low, quartiles.high)
        )
        text.append(f"\n{low} to {high}", style="dim")
    return text


def estimate(interval: Interval | None, digits: int, ends: bool = False) -> Text:
    """Format an estimate, with the ends of its interval on the line below if ``ends``."""
    from rich.text import Text

    text = Text(number(None if interval is None else interval.estimate, digits))
    if ends and interval is not None and interval.low is not None:
        low, high = number(interval.low, digits), number(interval.high, digits)
        text.append(f"\n{low} to {high}", style="dim")
    return text


def number(value: float | None, digits: int) -> str:
    """Format a number with this many digits; a dash for None.

    >>> number(-0.001, 2), number(None, 1), number(3.14, 1)
    ('0.00', '-', '3.1')
    """
    return "-" if value is None else decimals(value, digits)


# Print the result of an audit as a table.


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

    from foci.bags.cohort import line_of
    from foci.reports.text import LINE

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

    from foci.audits.settings import KEPT

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
    from foci.words import counted

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

    from foci.audits.settings import KEPT

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

    from foci.audits.settings import KEPT

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


# What ``foci train`` says: how the slides are split, each epoch, and how long it will take.


def split_lines(cohort: Cohort, how: str) -> Iterator[str]:
    """How the slides were split, then slides, patients and classes of every split."""
    from foci.bags.splits import SPLITS

    yield f"splits: {how}"
    for split, classes in sorted(cohort.counts().items(), key=lambda part: SPLITS.index(part[0])):
        patients = len({slide.case_id for slide in cohort if slide.split == split})
        each = ", ".join(f"{name} {classes[name]}" for name in cohort.classes)
        n = counted(sum(classes.values()), "slide")
        yield f"  {split}: {n} of {counted(patients, 'patient')} ({each})"


def splits_from(table: Cohort, configuration: TrainingConfiguration) -> str:
    """Where the splits come from.

    Args:
        table: The cohort as read, before it is split.
        configuration: With the split table, if there is one.
    """
    from foci.bags.importers.importer import choose_splits

    if all(slide.split is None for slide in table):
        return f"made by patient, 70, 10 and 20 % of each class, seed {configuration.seed}"
    path, _, _ = choose_splits(configuration.splits, configuration.fold)
    return f"as in {(configuration.labels if path is None else path).name}"


class EpochLines:
    """Logs each epoch, and after the first one how long the others will take.

    Args:
        clock: Seconds that pass.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.done = self.total = 0
        self._began: float | None = None

    def starting(self, done: int, total: int) -> None:
        """Begin, after ``done`` of ``total`` epochs."""
        self.done, self.total, self._began = done, total, self.clock()
        if done:
            _LOG.info("resuming after %d of %s", done, counted(total, "epoch"))

    def __call__(self, epoch: EpochReport) -> None:
        """Log one epoch."""
        self.done += 1
        _LOG.info(_line(epoch))
        if self._began is None:
            return
        seconds, left = self.clock() - self._began, self.total - self.done
        self._began = None
        if left:
            _LOG.info(
                f"one epoch took {duration(seconds)}: about {duration(left * seconds)} for "
                f"{counted(left, 'more epoch')}; Ctrl-C keeps every finished epoch, and the same "
                "command goes on"
            )

    @property
    def stopped(self) -> str:
        """What a run that was stopped leaves, and how to go on."""
        if not self.done:
            return "stopped before the first epoch was finished; give the same command again"
        kept = f"{self.done} of {counted(self.total, 'epoch')}"
        return f"stopped after {kept}, which are kept; give the same command again to go on"


def _line(epoch: EpochReport) -> str:
    """One epoch in one line."""
    terms = ", ".join(f"{name} {value:.3f}" for name, value in epoch.terms.items())
    width = len(str(epoch.epochs))
    return (
        f"{epoch.stage} {epoch.epoch:>{width}}/{epoch.epochs}  loss {epoch.loss:.3f} ({terms})  "
        f"val loss {epoch.val_loss:.3f}  val accuracy {epoch.val_accuracy:.3f}"
        f"{'  best' if epoch.best else ''}"
    )
