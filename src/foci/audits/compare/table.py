"""Compare audits in one table, a row each, as CSV or Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from foci.audits.analysis.csv_tables import as_csv
from foci.audits.analysis.summary import RankingNumbers, Summary
from foci.audits.audit import StoredAudit
from foci.audits.compare.differences import differences
from foci.audits.records import Alarm, Interval
from foci.audits.settings import View
from foci.errors import FociError
from foci.words.rounding import decimals, in_percent

VIEW: View = "prediction"
"""The view every audit has, with or without labels."""

INTERVALS = ("restricted", "msk_cond", "reach", "shi_native", "shi_random", "faithfulness")
AnsweredQuestion = Literal["map", "tiles", "order"]
ANSWERS: dict[AnsweredQuestion, str] = {
    "map": "believe the map?",
    "tiles": "decision hangs on",
    "order": "better order?",
}
"""Heads of the columns that hold the answers."""

COHORT = ("n_slides", "n_cases", "n_skipped", "kappa", "k_max")
_UNDEFINED = Interval(estimate=None, low=None, high=None)


@dataclass(frozen=True)
class ComparisonRow:
    """One audit of a comparison.

    Attributes:
        name: Name of the model, with the audit folder if two audits are of the same model.
        architecture: Architecture of the classifier.
        summary: All numbers of the audit.
        alarms: Its alarms.
    """

    name: str
    architecture: str
    summary: Summary
    alarms: tuple[Alarm, ...] = ()

    def numbers(self, ranking: str) -> RankingNumbers | None:
        """Numbers of a ranking in the prediction view; None where it was not run."""
        return self.summary.views[VIEW].get(ranking)

    def interval(self, key: str, ranking: str) -> Interval:
        """Interval of one of :data:`INTERVALS`; undefined if the audit does not have it."""
        interval: Interval | None = getattr(self.numbers(ranking), key, None)
        return _UNDEFINED if interval is None else interval

    def answer(self, question: AnsweredQuestion) -> str:
        """Answer to a question in a few words."""
        answers = self.summary.answers
        return {
            "map": answers.map.answer,
            "tiles": answers.tiles.answer,
            "order": answers.order.answer,
        }[question]


@dataclass(frozen=True)
class Comparison:
    """Table of audits in the prediction view, one row each, in the order given.

    Attributes:
        rankings: Every ranking that some audit ran.
        rows: One per audit.
        notes: Changed files, and differences that make numbers of the rows incomparable, one
            sentence each.
    """

    rankings: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]
    notes: tuple[str, ...]

    def to_csv(self) -> str:
        """The table as CSV: all columns, floats with all digits."""
        return as_csv([_flat(row, self.rankings) for row in self.rows])

    def to_markdown(self) -> str:
        """The table as Markdown: alarms, tiles over all slides, headroom, faithfulness, answers."""
        header, *lines = self.cells()
        table = [header, ["---"] * len(header), *lines]
        text = "\n".join("| " + " | ".join(map(_escaped, line)) + " |" for line in table)
        alarms = "".join(
            f"**Alarm, {alarm.kind}, {row.name}:** {alarm.sentence}\n\n"
            for row in self.rows
            for alarm in row.alarms
        )
        return alarms + text + "\n" + "".join(f"\n- {note}" for note in self.notes)

    def cells(self) -> list[list[str]]:
        """Header and rows of the Markdown table, as text."""
        tested = [ranking for ranking in self.rankings if ranking not in ("native", "random")]
        header = ["model", "architecture", "AUC"]
        header += [f"tiles, {ranking}" for ranking in self.rankings]
        for ranking in tested:
            header += [f"SHI of {ranking} vs native", f"SHI of {ranking} vs random"]
        header += [f"faithfulness, {ranking}" for ranking in self.rankings if ranking != "random"]
        return [[*header, *ANSWERS.values()], *(self._line(row, tested) for row in self.rows)]

    def _line(self, row: ComparisonRow, tested: Sequence[str]) -> list[str]:
        cells = [row.name, row.architecture, _number(row.summary.full_bag.auc, 3)]
        for ranking in self.rankings:
            reach = row.interval("reach", ranking).estimate
            reached = "" if reach is None else f" ({in_percent(reach)} reach)"
            cells.append(_number(row.interval("restricted", ranking).estimate, 1) + reached)
        for ranking in tested:
            cells += [
                _spread(row.interval(f"shi_{base}", ranking)) for base in ("native", "random")
            ]
        for ranking in self.rankings:
            if ranking != "random":
                cells.append(_number(row.interval("faithfulness", ranking).estimate, 3))
        return [*cells, *(row.answer(question) or "-" for question in ANSWERS)]


def compare(audits: Sequence[StoredAudit]) -> Comparison:
    """Compare audits in one table, with notes where their numbers are not comparable.

    Raises:
        FociError: If there are fewer than two, or they share no slide and no class.
    """
    if len(audits) < 2:
        raise FociError("compare", "needs two or more audits", "give another audit folder")
    for place, times in Counter(audit.folder.resolve() for audit in audits).items():
        if times > 1:
            raise FociError(place, "is given twice", "name every audit once")
    names = distinct_names(audits)
    rankings = tuple(dict.fromkeys(r for audit in audits for r in audit.summary.rankings))
    notes = [*changed_notes(audits, names), *differences(audits, names)]
    rows = tuple(
        ComparisonRow(
            name,
            audit.manifest.backbone.architecture,
            audit.summary,
            audit.alarms,
        )
        for audit, name in zip(audits, names, strict=True)
    )
    return Comparison(rankings, rows, tuple(notes))


def changed_notes(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    """One sentence per audit whose files were changed since it wrote them."""
    return [
        f"Changed since the audit wrote it, {name}: {', '.join(audit.changed)}."
        for audit, name in zip(audits, names, strict=True)
        if audit.changed
    ]


def distinct_names(audits: Sequence[StoredAudit]) -> list[str]:
    """Names of the models, with the audit folder if two audits are of the same model."""
    names = [audit.manifest.name for audit in audits]
    paths = [audit.folder.resolve() for audit in audits]
    for places in ([path.name for path in paths], paths):
        times = Counter(names)
        names = [
            name if times[name] == 1 else f"{audit.manifest.name} ({place})"
            for name, audit, place in zip(names, audits, places, strict=True)
        ]
    return names


def _number(value: float | None, digits: int) -> str:
    """Format a number; a dash for None."""
    return "-" if value is None else decimals(value, digits)


def _spread(interval: Interval) -> str:
    """Format an estimate with its interval."""
    if interval.estimate is None:
        return "-"
    estimate = _number(interval.estimate, 2)
    if interval.low is None or interval.high is None:
        return estimate
    return f"{estimate} ({_number(interval.low, 2)} to {_number(interval.high, 2)})"


def _flat(row: ComparisonRow, rankings: Sequence[str]) -> dict[str, Any]:
    """One row of the CSV table."""
    summary = row.summary
    line: dict[str, Any] = {
        "name": row.name,
        "architecture": row.architecture,
        **{key: getattr(summary, key) for key in COHORT},
        **summary.full_bag.model_dump(),
        "alarms": "; ".join(alarm.kind for alarm in row.alarms),
    }
    for ranking in rankings:
        for key in INTERVALS:
            interval = row.interval(key, ranking)
            line[f"{key}:{ranking}"] = interval.estimate
            line[f"{key}:{ranking}_low"] = interval.low
            line[f"{key}:{ranking}_high"] = interval.high
    return line | {f"answer:{question}": row.answer(question) for question in ANSWERS}


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|").replace("\n", " ")
