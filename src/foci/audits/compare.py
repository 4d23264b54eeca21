"""Compare audits in one table, a row each, and say which differences make numbers incomparable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import Any, Literal

import numpy as np

from foci.audits.audit import StoredAudit
from foci.audits.folder import RankedTiles, column
from foci.audits.records import Alarm, Interval, RankingNumbers, Summary, plain
from foci.audits.settings import RANDOM, SELECTOR, View
from foci.audits.tables import as_csv, interval_columns
from foci.errors import FociError
from foci.metrics.inputs import Floats, defined_mean
from foci.metrics.ranking import rank_correlations, top
from foci.metrics.stats import mean_intervals
from foci.words import csv_text, decimals, in_percent

VIEW: View = "prediction"
"""The view every audit has, with or without labels."""

INTERVALS = (
    "restricted", "msk_cond", "reach", "shi_native", "shi_random", "faithfulness", "efficiency",
)  # fmt: skip
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
    """One audit of a comparison."""

    name: str
    architecture: str
    summary: Summary
    alarms: tuple[Alarm, ...] = ()

    def numbers(self, ranking: str) -> RankingNumbers | None:
        """Numbers of a ranking in the prediction view; None where it was not run."""
        return self.summary.views[VIEW].get(ranking)

    def interval(self, key: str, ranking: str) -> Interval:
        """Interval of one of :data:`INTERVALS`; undefined if the audit does not have it."""
        numbers = self.numbers(ranking)
        owner = getattr(numbers, "decided", None) if key == "efficiency" else numbers
        interval: Interval | None = getattr(owner, key, None)
        return _UNDEFINED if interval is None else interval

    def answer(self, question: AnsweredQuestion) -> str:
        """Answer to a question in a few words."""
        return self.summary.answers.in_short[question]


@dataclass(frozen=True)
class Comparison:
    """Table of audits in the prediction view, one row each, in the order given.

    Attributes:
        rankings: Every ranking that some audit ran.
        notes: Changed files, and differences that make numbers of the rows incomparable, one
            sentence each.
        agreement: Of the maps of every two trainings of one architecture, on the same tiles.
    """

    rankings: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]
    notes: tuple[str, ...]
    agreement: tuple[MapAgreement, ...] = ()

    @property
    def map(self) -> str:
        """Name of the map that the audits judge; "the map" where they judge different ones."""
        names = {row.summary.map for row in self.rows}
        return names.pop() if len(names) == 1 else "the map"

    @property
    def efficient(self) -> tuple[str, ...]:
        """The rankings whose distance from the proven minimum is known in some audit."""
        return tuple(
            ranking
            for ranking in self.rankings
            if any(row.interval("efficiency", ranking).estimate is not None for row in self.rows)
        )

    def to_csv(self) -> str:
        """The table as CSV: all columns, floats with all digits."""
        return as_csv(map(self._flat, self.rows))

    def to_markdown(self) -> str:
        """The table as Markdown: alarms, tiles over all slides, headroom, faithfulness, answers."""
        header, *lines = self.cells()
        table = [header, ["---"] * len(header), *lines]
        text = "\n".join(
            "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in line) + " |"
            for line in table
        )
        alarms = "".join(
            f"**Alarm, {alarm.kind}, {row.name}:** {alarm.sentence}\n\n"
            for row in self.rows
            for alarm in row.alarms
        )
        return alarms + text + "\n" + "".join(f"\n- {note}" for note in self.notes)

    def cells(self) -> list[list[str]]:
        """Header and rows of the Markdown table, as text."""
        beside = {RANDOM, *(row.summary.map for row in self.rows)}
        tested = [ranking for ranking in self.rankings if ranking not in beside]
        ordered = [ranking for ranking in self.rankings if ranking != RANDOM]
        header = ["model", "architecture", "AUC"]
        header += [f"tiles, {ranking}" for ranking in self.rankings]
        header += [f"SHI of {name} vs {base}" for name in tested for base in (self.map, RANDOM)]
        header += [f"faithfulness, {ranking}" for ranking in ordered]
        header += [f"efficiency, {ranking}" for ranking in self.efficient]
        lines = [[*header, *ANSWERS.values()]]
        for row in self.rows:
            cells = [row.name, row.architecture, _number(row.summary.full_bag.auc, 3)]
            for ranking in self.rankings:
                reach = row.interval("reach", ranking).estimate
                reached = "" if reach is None else f" ({in_percent(reach)} reach)"
                cells.append(_number(row.interval("restricted", ranking).estimate, 1) + reached)
            for name in tested:
                cells += [_spread(row.interval(key, name)) for key in ("shi_native", "shi_random")]
            for name in ordered:
                cells.append(_number(row.interval("faithfulness", name).estimate, 3))
            cells += [_spread(row.interval("efficiency", name)) for name in self.efficient]
            lines.append([*cells, *(row.answer(question) or "-" for question in ANSWERS)])
        return lines

    def _flat(self, row: ComparisonRow) -> dict[str, Any]:
        """One row of the CSV table."""
        line: dict[str, Any] = {
            "name": row.name,
            "architecture": row.architecture,
            **{key: getattr(row.summary, key) for key in COHORT},
            **row.summary.full_bag.model_dump(),
            "alarms": "; ".join(alarm.kind for alarm in row.alarms),
        }
        for ranking in self.rankings:
            for key in INTERVALS:
                line |= interval_columns(f"{key}:{ranking}", row.interval(key, ranking))
        return line | {f"answer:{question}": row.answer(question) for question in ANSWERS}


def _number(value: float | None, digits: int) -> str:
    """Format a number; a dash for None."""
    return "-" if value is None else decimals(value, digits)


def _spread(interval: Interval) -> str:
    """Format an estimate with its interval."""
    estimate = _number(interval.estimate, 2)
    if interval.estimate is None or interval.low is None or interval.high is None:
        return estimate
    return f"{estimate} ({_number(interval.low, 2)} to {_number(interval.high, 2)})"


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
    return Comparison(
        rankings=tuple(dict.fromkeys(r for audit in audits for r in audit.summary.rankings)),
        rows=tuple(
            ComparisonRow(name, audit.manifest.backbone.architecture, audit.summary, audit.alarms)
            for audit, name in zip(audits, names, strict=True)
        ),
        notes=(*changed_notes(audits, names), *differences(audits, names)),
        agreement=tuple(map_agreement(audits, names)),
    )


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


# Differences


def differences(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    """List every difference that matters, one sentence each."""
    slides = [{slide.slide_id for slide in audit.slides} for audit in audits]
    classes = [set(audit.summary.classes) for audit in audits]
    if not set.intersection(*slides) and not set.intersection(*classes):
        fix = "compare audits of one task"
        raise FociError(", ".join(names), "share neither a slide nor a class", fix)
    ran = [audit.summary.rankings for audit in audits]
    lacking = {
        ranking: [name for name, own in zip(names, ran, strict=True) if ranking not in own]
        for ranking in dict.fromkeys(ranking for own in ran for ranking in own)
    }
    return [
        *_settings(audits, names),
        *_recipes(audits, names),
        *_slides(slides, names),
        *_features(audits, names),
        *(f"{ranking} was not run in {', '.join(own)}." for ranking, own in lacking.items() if own),
    ]


def _settings(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    """Compare settings; each counts only in audits whose rankings depend on it."""

    def setting(name: str, ranking: str | None = None) -> Callable[[StoredAudit], Any]:
        return lambda audit: (
            getattr(audit.manifest.settings, name)
            if ranking is None or ranking in audit.summary.rankings
            else None
        )

    compared: tuple[tuple[str, str, Callable[[StoredAudit], Any]], ...] = (
        ("kappa differs", "counts answer different questions", lambda a: a.summary.kappa),
        ("k_max differs", "restricted means end at different counts", lambda a: a.summary.k_max),
        ("classes differ", "AUC is of different tasks", lambda a: ", ".join(a.summary.classes)),
        ("fit_target differs", "selectors support different classes",
         setting("fitted_for", SELECTOR)),
        ("choose_by differs", "epochs were chosen differently", setting("chosen_by", SELECTOR)),
        ("seeds differ", "selectors are of different fits", setting("seeds", SELECTOR)),
        ("random_orders differs", "means of random are over different orders",
         setting("random_orders", RANDOM)),
        ("null_maps differs", "maps had to beat different numbers of content-free maps",
         setting("null_maps", RANDOM)),
        ("map differs", "the first answer is about different maps",
         lambda a: a.manifest.settings.map or "the model's own"),
        ("deletion differs", "drops are of different counts", setting("deletion")),
        ("split differs", "slides may have been trained on", setting("split")),
    )  # fmt: skip
    sentences = []
    for what, consequence, read in compared:
        every = [(name, read(audit)) for name, audit in zip(names, audits, strict=True)]
        values = [(name, value) for name, value in every if value is not None]
        if any(value != values[0][1] for _, value in values):
            each = "; ".join(
                f"{name} {','.join(map(str, v)) if isinstance(v, (list, tuple)) else v}"
                for name, v in values
            )
            sentences.append(f"{what} ({each}): {consequence}.")
    return sentences


def _recipes(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    """Compare recipes by all of their settings, whatever their names."""
    fitted = [
        (name, audit.manifest.settings)
        for name, audit in zip(names, audits, strict=True)
        if SELECTOR in audit.summary.rankings
    ]
    plans = [settings.plan.model_dump(exclude={"name"}) for _, settings in fitted]
    if all(plan == plans[0] for plan in plans):
        return []
    each = []
    for name, settings in fitted:
        changes = ", ".join(f"{key}={value}" for key, value in settings.recipe_settings.items())
        each.append(f"{name} {settings.recipe}" + (f" with {changes}" if changes else ""))
    return [f"recipe differs ({'; '.join(each)}): selectors were fitted differently."]


def _slides(slides: Sequence[set[str]], names: Sequence[str]) -> list[str]:
    common = set.intersection(*slides)
    if all(own == common for own in slides):
        return []
    each = "; ".join(f"{name} {len(own)}" for name, own in zip(names, slides, strict=True))
    together = "in common" if len(slides) == 2 else "in all of them"
    return [f"slides differ ({each}; {len(common)} {together}): means are over different slides."]


def _features(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    """Compare features pair by pair: two of three audits may share slides that the third lacks."""
    seen = [
        {slide.slide_id: (slide.n_tiles, slide.features_xxh3) for slide in audit.slides}
        for audit in audits
    ]
    differ = []
    for (name, first), (other, second) in combinations(zip(names, seen, strict=True), 2):
        shared = first.keys() & second.keys()
        n = sum(first[slide] != second[slide] for slide in shared)
        if n:
            differ.append(f"{name} and {other} on {n} of {len(shared)} shared")
    if not differ:
        return []
    return [f"features differ ({'; '.join(differ)}): a tile is not the same tile in each."]


# Agreement of maps, across folds and seeds of one model


@dataclass(frozen=True)
class MapAgreement:
    """How far the maps of two audits agree, on the slides whose tiles both have.

    Attributes:
        first, second: The audits.
        shared8, shared32: Share of the first 8 and 32 tiles in common, mean over slides, with its
            interval over patients; a slide with fewer tiles is left out.
        chance8, chance32: What two random orders of these slides share.
        spearman: Rank correlation, mean over slides; two random orders have 0.
        slides: The same of every slide: by name, the two shares and the correlation.
    """

    first: str
    second: str
    shared8: Interval
    shared32: Interval
    chance8: float | None
    chance32: float | None
    spearman: Interval
    slides: dict[str, tuple[float | None, float | None, float | None]]


def map_agreement(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[MapAgreement]:
    """Agreement of the maps of every two trainings of one architecture on slides that both have."""
    found = []
    for (name, audit), (other_name, other) in combinations(zip(names, audits, strict=True), 2):
        kinds = {one.manifest.backbone.architecture for one in (audit, other)}
        if len(kinds) == 1:
            found.append(_agreement(name, audit, other_name, other))
    return [one for one in found if one is not None]


def agreement_csv(pairs: Sequence[MapAgreement]) -> str:
    """The agreement of every slide as CSV."""
    heads = ("first", "second", "slide_id", "shared8", "shared32", "spearman")
    rows = (
        (pair.first, pair.second, slide, *numbers)
        for pair in pairs
        for slide, numbers in pair.slides.items()
    )
    return csv_text([heads, *rows])


def _agreement(
    name: str, audit: StoredAudit, other_name: str, other: StoredAudit
) -> MapAgreement | None:
    known = {slide.slide_id: (slide.n_tiles, slide.features_xxh3) for slide in other.slides}
    case_of = {
        slide.slide_id: slide.case_id
        for slide in audit.slides
        if known.get(slide.slide_id) == (slide.n_tiles, slide.features_xxh3)
    }
    columns = [_map_column(one) for one in (audit, other)]
    if not case_of or None in columns:
        return None
    numbers: dict[str, list[float]] = {}
    for mine, yours in _together(audit, other, case_of):
        if np.array_equal(mine.tiles, yours.tiles):
            scores = np.stack([mine.scores[str(columns[0])], yours.scores[str(columns[1])]])
            numbers[mine.slide_id] = _shared(scores.astype(np.float64))
    if not numbers:
        return None
    table = np.array(list(numbers.values()))
    settings = audit.manifest.settings
    cases = [case_of[slide] for slide in numbers]

    def mean(column: int) -> Interval:
        values, kept = table[:, column], ~np.isnan(table[:, column])
        if not kept.any():
            return _UNDEFINED
        own = [case for case, keep in zip(cases, kept, strict=True) if keep]
        return Interval.model_validate(mean_intervals(values[kept, None], own, **settings.drawn)[0])

    chance = plain(defined_mean(table[:, 3:], axis=0))
    return MapAgreement(
        name, other_name, mean(0), mean(1), chance[0], chance[1], mean(2),
        {slide: tuple(plain(row[:3])) for slide, row in numbers.items()},
    )  # fmt: skip


def _map_column(audit: StoredAudit) -> str | None:
    """Under which name the scores of the map are stored; None where it was not run."""
    ranking = audit.summary.map
    if ranking not in audit.curves.rankings:
        return None
    return column(ranking, audit.curves.seeds(ranking)[0])


def _together(
    first: StoredAudit, second: StoredAudit, slides: Collection[str]
) -> Iterator[tuple[RankedTiles, RankedTiles]]:
    """Slides of two audits side by side; each file is read once, in whatever order it is."""
    waiting: tuple[dict[str, RankedTiles], dict[str, RankedTiles]] = ({}, {})
    for pair in zip_longest(first.tiles(slides), second.tiles(slides)):
        for side, tiles in enumerate(pair):
            if tiles is not None:
                waiting[side][tiles.slide_id] = tiles
        for slide in waiting[0].keys() & waiting[1].keys():
            yield waiting[0].pop(slide), waiting[1].pop(slide)


def _shared(scores: Floats) -> list[float]:
    """Shares of the first 8 and 32 tiles in common, rank correlation, and chance of the shares."""
    n = scores.shape[1]
    shares, chance = [], []
    for k in (8, 32):
        first, second = (set(top(row, min(k, n)).tolist()) for row in scores)
        shares.append(len(first & second) / k if k <= n else np.nan)
        chance.append(k / n if k <= n else np.nan)
    return [*shares, float(rank_correlations(scores)[0, 1]), *chance]
