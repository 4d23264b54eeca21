"""What a report says in words: formatted numbers, answers, facts, tables.

Numbers are formatted here alone; an undefined one is an en dash, never NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from foci.audits.answers import in_words
from foci.audits.manifest import Manifest
from foci.audits.records import (
    Answers,
    AxisComparison,
    CountQuartiles,
    FullBag,
    Interval,
    OrderComparison,
    RankingNumbers,
    ReadoutRow,
    Summary,
)
from foci.audits.settings import NATIVE, AuditSettings, View
from foci.metrics import seed_spread
from foci.reports.models import AuditPayload
from foci.words import MINUS, PLAIN_NAMES, counted, decimals, in_percent, p_value, signed

NOTHING = "\N{EN DASH}"

LINE = (
    "A rationale found here is model-sufficient: it suffices for this classifier. "
    "It is neither a diagnosis nor evidence of clinical sufficiency."
)


def fixed(value: float | None, digits: int = 3) -> str:
    """Format with a fixed number of decimals and a true minus sign.

    >>> fixed(-0.25, 2), fixed(-0.0001, 2), fixed(None)
    ('−0.25', '0.00', '–')
    """
    return NOTHING if value is None else decimals(value, digits).replace("-", MINUS)


def signed_spread(low: float | None, high: float | None) -> str:
    """Format the ends of an interval, each with its sign.

    >>> signed_spread(-0.1, 0.25)
    '−0.10 to +0.25'
    """
    if low is None or high is None:
        return ""
    return f"{signed(low)} to {signed(high)}"


def tiles(value: float | None) -> str:
    """Format a tile count: one decimal, none if the count is whole or large.

    >>> tiles(3.25), tiles(4.0), tiles(13895.6)
    ('3.3', '4', '13,896')
    """
    whole = value is not None and (float(value).is_integer() or abs(value) >= 100)
    return f"{int(fixed(value, 0)):,}" if whole else fixed(value, 1)


def percent(value: float | None) -> str:
    """Format a share as a percentage.

    >>> percent(0.125)
    '13%'
    """
    return NOTHING if value is None else in_percent(value)


def spread(interval: Interval | None, digits: int = 1, scale: float = 1.0) -> str:
    """Format the ends of an interval.

    >>> spread(Interval(estimate=2.0, low=-1.0, high=3.5))
    '−1.0 to 3.5'
    """
    if interval is None or interval.low is None or interval.high is None:
        return ""
    return f"{fixed(scale * interval.low, digits)} to {fixed(scale * interval.high, digits)}"


def percent_ends(interval: Interval) -> str:
    """Format the ends of an interval of shares as percentages.

    >>> percent_ends(Interval(estimate=0.5, low=0.125, high=1.0))
    '13 to 100%'
    """
    ends = spread(interval, 0, scale=100)
    return f"{ends}%" if ends else ""


def with_spread(interval: Interval | None) -> str:
    """Format an estimate with the ends of its interval.

    >>> with_spread(Interval(estimate=2.0, low=-1.0, high=3.5))
    '2.0 (−1.0 to 3.5)'
    """
    if interval is None or interval.estimate is None:
        return NOTHING
    ends = spread(interval)
    return fixed(interval.estimate, 1) + (f" ({ends})" if ends else "")


def quartiles(counts: CountQuartiles | None, k_max: int) -> str:
    """Format a median of counts, with its quartiles.

    >>> from foci.metrics import CountQuantile
    >>> one, more = CountQuantile(3.0, None), CountQuantile(None, "beyond")
    >>> quartiles(CountQuartiles(low=one, median=one, high=more), 256)
    '3 (3 to more than 256)'
    """
    if counts is None:
        return NOTHING
    low, median, high = ends_in_words(counts, k_max)
    return f"{median} ({low} to {high})"


def ends_in_words(counts: CountQuartiles, most: int | str) -> list[str]:
    """Lower quartile, median and upper quartile of counts."""
    return [in_words(end, most) for end in (counts.low, counts.median, counts.high)]


# The three answers


Tone = Literal["good", "part", "bad", "none"]

_TONES: dict[str, Tone] = {
    "yes": "good",
    "headroom": "part",
    "native suffices": "good",
    "only as a pointer": "part",
    "sufficient, not decisive": "part",
    "mixed": "part",
    "no better order found": "part",
    "no better than a content-free map": "bad",
    "no better than chance": "bad",
    "worse than chance": "bad",
    "native is better": "bad",
}
MAP, TILES, ORDER = (
    "Can I believe the map?",
    "How many tiles does the decision hang on?",
    "Is there a better order?",
)


@dataclass(frozen=True)
class Answer:
    """A question, a short answer with its colour, and the sentences that support it."""

    question: str
    short: str
    tone: Tone
    sentences: tuple[str, ...]


def is_stand_in(manifest: Manifest) -> bool:
    """Whether the map is a score that stands in for the attention which the model lacks."""
    return manifest.backbone.score == "proxy" and not manifest.settings.map


def plain_name(ranking: str, manifest: Manifest) -> str:
    """What a ranking is called on a first screen."""
    stand_in = ranking == NATIVE and is_stand_in(manifest)
    return "stand-in map" if stand_in else PLAIN_NAMES.get(ranking, ranking)


@dataclass(frozen=True)
class ComparisonLine:
    """One axis of one comparison, for the table of evidence.

    Attributes:
        medians, ratio: Of both rankings, and the ratio of their geometric means.
        slides, patients: On how many the first ranking is ahead, behind, equal.
    """

    rankings: str
    axis: str
    interval: AxisComparison
    text: str
    pvalue: str
    medians: str
    ratio: str
    slides: str
    patients: str


def tone_of(answer: str | None) -> Tone:
    """Colour of an answer of the rules: good, partly good, bad, none where it decides nothing.

    >>> tone_of("headroom"), tone_of("inconclusive"), tone_of(None)
    ('part', 'none', 'none')
    """
    return _TONES.get(answer or "", "none")


def answers(summary: Summary, manifest: Manifest) -> tuple[Answer, ...]:
    """The three answers, in the prediction view."""
    found = summary.answers
    stand_in = ("This model has no attention of its own: its map is a stand-in.",)
    proxy = stand_in if is_stand_in(manifest) else ()
    map_, tiles_, order = found.map, found.tiles, found.order
    return (
        Answer(MAP, map_.answer, tone_of(map_.answer), (*map_.sentences, *proxy)),
        Answer(TILES, tiles_.answer, tone_of(tiles_.answer), tuple(tiles_.sentences)),
        Answer(ORDER, order.short, tone_of(order.answer), tuple(order.sentences)),
    )


def evidence(found: Answers) -> tuple[ComparisonLine, ...]:
    """Every comparison that an answer rests on, one line per axis."""
    return tuple(line for one in found.comparisons for line in comparison_lines(one))


def comparison_lines(comparison: OrderComparison) -> Iterator[ComparisonLine]:
    """The axes of one comparison, sufficiency first."""
    for axis in (comparison.sufficiency, comparison.necessity):
        if axis is not None:
            yield comparison_line(comparison.first, comparison.second, axis)


def comparison_line(first: str, second: str, axis: AxisComparison) -> ComparisonLine:
    """One ranking against another on one axis."""
    ends = signed_spread(axis.low, axis.high)
    return ComparisonLine(
        rankings=f"{first} against {second}",
        axis=f"{axis.axis} ({axis.measure})",
        interval=axis,
        text=signed(axis.d) + (f" ({ends})" if ends else ""),
        pvalue=p_value(axis.pvalue),
        medians=f"{_median(axis, axis.first)} and {_median(axis, axis.second)}",
        ratio="" if axis.ratio is None else f"ratio {fixed(axis.ratio, 2)}",
        slides=f"{axis.wins}, {axis.losses}, {axis.ties}",
        patients=f"{axis.case_wins}, {axis.case_losses}, {axis.n_cases - axis.n_differ}",
    )


def _median(axis: AxisComparison, value: float | None) -> str:
    """A median count or area; a count that half of the slides lack is none."""
    if axis.measure == "deletion area":
        return fixed(value)
    return "none" if value is None else tiles(value)


def null_table(found: Answers) -> PlainTable | None:
    """Every ranking that was compared with content-free maps; None where none was."""
    controls = [one for one in (found.map.null, found.order.null) if one is not None]
    if not controls:
        return None
    head = ("ranking", "net share", "maps beaten")
    rows = [
        (c.ranking, signed(c.d), f"{c.beaten} of {c.n_maps} (p = {fixed(c.pvalue)})")
        for c in controls
    ]
    rows += [
        (name, signed(d), NOTHING) for name, d in controls[0].references.items() if d is not None
    ]
    slides = counted(controls[0].n_slides, "decided slide")
    sampled = f"a sample of {slides}" if controls[0].sampled else slides
    note = (
        f"Each of {controls[0].n_maps} random directions in feature space is a map; the best has "
        f"{signed(controls[0].best)}. Net share: slides on which the model loses more "
        "probability without the first tiles of an order than without random ones, minus those on "
        f"which it loses less ({sampled}). p: one plus the maps that do as well, over one plus all "
        "maps. The length of the feature stands beside them, without a vote."
    )
    return PlainTable("Beside maps that know nothing", head, tuple(rows), note)


# The choice of the readout, and facts


@dataclass(frozen=True)
class ReadoutTable:
    """How the validation slides chose the order that answers "which tiles?".

    Attributes:
        sentence: What was chosen, on how many slides.
        rows: Name of an order, whether it was chosen, and its cells.
        lines: The comparisons that the rule asks for.
        rule: The rule, in words.
    """

    sentence: str
    rows: tuple[tuple[str, bool, tuple[str, ...]], ...]
    lines: tuple[ComparisonLine, ...]
    rule: str


def readout_of(manifest: Manifest) -> ReadoutTable | None:
    """The table of an audit whose validation slides chose; None where they did not."""
    made = manifest.readout
    if made is None:
        return None
    first, second = made.rows[-1].ranking, made.rows[0].ranking
    return ReadoutTable(
        sentence=f"The {made.chosen} order does. It was chosen on {made.slides_in_words}; no "
        "audited slide was read for it. The selector was fitted with the help of the same slides, "
        "so that its numbers here are a little too good.",
        rows=tuple(
            (row.ranking, row.ranking == made.chosen, _readout_cells(row, row.ranking == second))
            for row in made.rows
        ),
        lines=tuple(comparison_line(first, second, axis) for axis in made.comparisons),
        rule=made.rule,
    )


def _readout_cells(row: ReadoutRow, is_base: bool) -> tuple[str, ...]:
    against = (NOTHING, NOTHING) if is_base else (str(row.fewer), str(row.more))
    decisive = "more than half have none" if row.decisive is None else tiles(row.decisive)
    return decisive, percent(row.share), *against, fixed(row.area)


Facts = list[tuple[str, str]]
"""Pairs of name and value."""

_FROM_FILE = re.compile("(from-file[=:])(.*)")
"""Before the path of a map; a page shows the file's name alone."""


def audit_facts(manifest: Manifest, summary: Summary) -> Facts:
    """Facts for the line under the title: classifier, slides, classes, AUC, confidence."""
    n, full, backbone = summary.n_skipped, summary.full_bag, manifest.backbone
    skipped = f", {n} skipped in the whole cohort" if n else ""
    slides, cap = manifest.slides, manifest.run_inputs.get("n_cap")
    cut = ""
    if slides is not None and slides.cut:
        cut = f"{slides.cut} of {counted(slides.audited, 'slide')} cut to {cap:,}"
    facts = [
        ("classifier", f"{backbone.architecture} ({backbone.parameters:,} parameters)"),
        ("slides", f"{summary.n_slides} of {counted(summary.n_cases, 'patient')}{skipped}"),
        ("tiles", cut),
        ("split", manifest.split),
        ("classes", ", ".join(summary.classes)),
        ("AUC", fixed(full.auc) if full.auc is not None else ""),
        ("accuracy", percent(full.accuracy) if full.accuracy is not None else ""),
        *performance(full),
        ("confidence κ", f"{summary.kappa:g}"),
        ("at most", counted(summary.k_max, "tile")),
    ]
    return [(name, value) for name, value in facts if value]


def performance(full: FullBag) -> Facts:
    """How well a risk, a number or labels fit what was observed, with intervals over patients."""
    named = (
        ("C-index", full.c_index),
        ("R2", full.r_squared),
        ("Spearman", full.spearman),
        ("macro AUC", full.macro_auc),
    )
    return [
        (name, f"{fixed(one.estimate)} ({fixed(one.low)} to {fixed(one.high)})")
        for name, one in named
        if one is not None
    ]


def settings_of(settings: AuditSettings) -> Facts:
    """Settings that the page was written with."""
    return [(name, _short(value)) for name, value in settings.model_dump(mode="json").items()]


def record_of(manifest: Manifest) -> Facts:
    """Sources, versions and hashes of an audit."""
    facts: list[tuple[str, str | int | None]] = [
        ("audit key", manifest.key),
        ("started", manifest.started),
        ("finished", manifest.finished),
        ("weights", manifest.backbone.fingerprint),
        ("features", manifest.features_sha256),
    ]
    facts += [(f"source: {name}", value) for name, value in manifest.sources.items()]
    facts += [
        (f"selector, seed {s.seed}", f"{s.recipe}, gate at {s.site}, epoch {s.best_epoch}, "
         f"weights {s.weights_sha256}")
        for s in manifest.selectors
    ]  # fmt: skip
    facts += [(f"slides: {name}", count) for name, count in manifest.slides or ()]
    facts += [(f"version: {name}", value) for name, value in manifest.versions.items()]
    facts += [(f"SHA-256: {name}", value) for name, value in manifest.files.items()]
    facts += [(f"SHA-256: {PurePath(name).name}", value) for name, value in manifest.maps.items()]
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


def _short(value: Any) -> str:
    if isinstance(value, str):
        return _FROM_FILE.sub(lambda found: found[1] + PurePath(found[2]).name, value)
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} = {item}" for key, item in value.items()) or "none"
    return "none" if value is None else str(value)


# Tables


MOST_ROWS = 100
"""Of slides in a table that replaces a figure when JavaScript is off."""


@dataclass(frozen=True)
class PlainTable:
    """A titled table of text, with a note below it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def plain_tables(data: AuditPayload) -> list[PlainTable]:
    """The chart and the slides as tables, for a page without JavaScript."""
    chart, gallery = data.carried, data.gallery
    found = []
    if chart is not None:
        names = {**PLAIN_NAMES, chart.map: data.map_called}
        counts = [k for k in chart.ks if k & (k - 1) == 0]
        found.append(
            PlainTable(
                "Share of slides whose decision the first K tiles carry",
                ("K", *(names.get(name, name) for name in chart.lines)),
                tuple(
                    (str(k), *(percent(line.at(chart.ks, k)) for line in chart.lines.values()))
                    for k in counts
                ),
            )
        )
    if gallery is not None:
        cut = f", the first {MOST_ROWS}" * (len(gallery.order) > MOST_ROWS)
        slides = data.slides
        found.append(
            PlainTable(
                f"Slides, map fails first{cut}",
                ("slide", "patient", "called", data.map_called),
                tuple(
                    (
                        slides.id[row],
                        slides.case[row],
                        data.classes[slides.predicted[row]],
                        fate_in_words(data, row),
                    )
                    for row in gallery.order[:MOST_ROWS]
                ),
            )
        )
    return found


def fate_in_words(data: AuditPayload, row: int) -> str:
    """What the map's first tiles do on one slide."""
    gallery, n = data.gallery, data.slides.n[row]
    if gallery is None or gallery.fate[row] == "not measured":
        return "no tiles were removed"
    fate = gallery.fate[row]
    if fate == "not sure":
        return "model is not sure of this slide"
    count, removed = gallery.counts[data.map][row], gallery.removed[row]
    if fate == "carried":
        carry = f"1 tile of {n} carries" if count == 1 else f"{count} tiles of {n} carry"
        return f"{carry} the decision"
    if fate == "survives":
        return f"decision survives without the map's first {counted(removed, 'tile')}"
    return "no first tiles both give the decision and change it when removed"


@dataclass(frozen=True)
class Cell:
    """A formatted number and, in small print below it, its interval or sample size."""

    text: str
    below: str = ""

    def noted(self, note: str) -> Cell:
        """The same cell with more small print; one that holds no number stays as it is."""
        if self.text == NOTHING:
            return self
        return Cell(self.text, f"{self.below}; {note}" if self.below else note)


@dataclass(frozen=True)
class Row:
    """One measure under every ranking; ``metric`` names the card that explains it, if one does."""

    title: str
    hint: str
    metric: str
    cells: tuple[Cell, ...]


def rows_of(summary: Summary, view: View) -> tuple[Row, ...]:
    """All numbers of a view: the measures that are defined for at least one ranking."""
    by_ranking = summary.views[view]
    k_max, kappa, base = summary.k_max, summary.kappa, summary.map
    most = summary.k_decisive or "half of the tiles"
    measures: list[tuple[str, str, str, Callable[[RankingNumbers], Cell]]] = [
        ("MSK, decided slides", "tiles; median and quartiles",
         "msk", _quartiles("msk", k_max)),
        ("Stable MSK, decided slides", "tiles until the model stays sure",
         "stable_msk", _on_grid(_quartiles("stable", k_max), "insertion")),
        ("Decisive K, decided slides", "tiles that suffice, and the decision flips without them",
         "decisive_k", _on_grid(_quartiles("decisive", most, share="decisive_share"), "deletion")),
        ("Decisive K, paper's form", "and at most 0.2 of the probability is left",
         "decisive_k",
         _on_grid(_quartiles("decisive_paper", most, share="decisive_paper_share"), "deletion")),
        ("Efficiency", "proven minimum of deciding tiles over decisive K; decided slides",
         "efficiency", _on_grid(_efficiency, "deletion")),
        ("Excess over the minimum", "deciding tiles beyond the proven minimum; mean and largest",
         "efficiency", _excess),
        *(
            (f"Decisive K, {name}", "decided slides that are predicted so",
             "decisive_k", _on_grid(_of_class(name, most), "deletion"))
            for name in summary.classes
        ),
        ("Flips back", "decided slides on which the decision comes back later",
         "stable_decisive_k",
         _on_grid(lambda n: Cell(percent(n.decided.flips_back if n.decided else None)),
                  "deletion", "grid")),
        ("MSK, relative", "all slides; tiles to 0.95 of the full bag's own confidence",
         "msk", _quartiles("relative", k_max)),
        ("Crossed though undecided", f"undecided slides that get to {kappa:g} all the same",
         "reach", lambda n: Cell(percent(n.decided.undecided_crosses if n.decided else None))),
        ("Restricted mean K", f"tiles; all slides, {k_max} where never reached",
         "restricted_mean", _interval("restricted", 1)),
        ("Conditional MSK", "tiles; only slides that reach",
         "msk_cond", _interval("msk_cond", 1)),
        ("Median K", "tiles until half of the slides reach",
         "kaplan_meier", lambda n: Cell(tiles(n.median_k))),
        ("Reach", f"slides that get to {kappa:g}",
         "reach", _shares("reach")),
        ("Reach, correct slides", "of those classified correctly",
         "reach_split", _share("reach_correct")),
        ("Reach, wrong slides", "of those misclassified",
         "reach_split", _share("reach_wrong")),
        ("Stable mean K", "tiles until the model stays sure",
         "stable_msk", _on_grid(_single("stable_restricted", 1), "insertion")),
        ("Falls back", "slides that reach but fall below again",
         "fallback_share", _on_grid(_share("fallback"), "insertion")),
        ("Before its rival", "slides where the target comes first",
         "specific_share", _share("specific")),
        ("AUKC", "area under the reveal curve",
         "aukc", _area),
        ("Faithfulness AUC", "area under the deletion drop",
         "slide_faithfulness", _interval("faithfulness", 3)),
        ("Symmetric relevance gain",
         "log-odds; least- minus most-relevant-first removal, whole slide, no threshold"
         if summary.output in ("class", "multilabel")
         else "spreads of the output; least- minus most-relevant-first removal, no threshold",
         "symmetric_relevance_gain", _interval("relevance_gain", 2)),
        ("AUC, 32 tiles kept", "against the labels",
         "selected_only_auc", _kept("auc")),
        ("AUC, adaptive K kept", "max(16, 3% of N) tiles",
         "selected_only_auc", _kept("adaptive_auc")),
        (f"SHI against {base}", "share of tiles saved",
         "shi", _interval("shi_native", 2)),
        ("SHI against random", "share of tiles saved",
         "shi_against_random", _interval("shi_random", 2)),
        ("Paired MSK", f"{base} and this one, slides that both reach",
         "paired_msk", _paired),
        ("Wilcoxon p", f"restricted K against {base}, by patient",
         "", _pvalue),
        ("Captured headroom", "of what a greedy search finds",
         "captured_headroom", _single("captured", 2)),
    ]  # fmt: skip
    rows = (
        Row(title, hint, metric, tuple(cell(by_ranking[name]) for name in summary.rankings))
        for title, hint, metric, cell in measures
    )
    return tuple(row for row in rows if any(cell.text != NOTHING for cell in row.cells))


def seeds_of(summary: Summary, view: View) -> list[tuple[str, str, str, str]]:
    """Ranking, measure, mean with population standard deviation, and the values of every seed."""
    measures = (
        ("restricted", "restricted mean K", 1),
        ("msk_cond", "conditional MSK", 1),
        ("reach", "reach", 2),
        ("aukc", "AUKC", 3),
        ("faithfulness", "faithfulness AUC", 3),
        ("relevance_gain", "symmetric relevance gain", 2),
    )
    lines = []
    for ranking, numbers in summary.views[view].items():
        for key, title, digits in measures:
            values: Sequence[float | None] = getattr(numbers, f"{key}_seeds")
            if len(values) > 1:
                known, mean = [value for value in values if value is not None], NOTHING
                if len(known) == len(values):
                    middle = fixed(sum(known) / len(known), digits)
                    mean = f"{middle} ± {fixed(seed_spread(known), digits)}"
                shown = " · ".join(fixed(value, digits) for value in values)
                lines.append((ranking, title, mean, shown))
    return lines


def _on_grid(
    cell: Callable[[RankingNumbers], Cell],
    direction: Literal["insertion", "deletion"],
    mark: str | None = None,
) -> Callable[[RankingNumbers], Cell]:
    """The same cell, marked where its number rests on a grid of counts."""

    def marked(numbers: RankingNumbers) -> Cell:
        if getattr(numbers.counts, direction) != "grid":
            return cell(numbers)
        bound = "grid" if direction == "insertion" else "grid, upper bound"
        return cell(numbers).noted(mark or bound)

    return marked


def _quartiles(
    key: str, most: int | str, share: str | None = None
) -> Callable[[RankingNumbers], Cell]:
    """A median with its quartiles below, and the share of slides that have a count."""

    def cell(numbers: RankingNumbers) -> Cell:
        quartiles: CountQuartiles | None = getattr(numbers.decided, key, None)
        if quartiles is None:
            return Cell(NOTHING)
        low, median, high = ends_in_words(quartiles, most)
        found = "" if share is None else f"; on {percent(getattr(numbers.decided, share))}"
        return Cell(median, f"{low} to {high}{found}")

    return cell


def _of_class(name: str, most: int | str) -> Callable[[RankingNumbers], Cell]:
    """Decisive K on the decided slides of one class, and on how many of them there is one."""

    def cell(numbers: RankingNumbers) -> Cell:
        own = None if numbers.decided is None else numbers.decided.per_class.get(name)
        if own is None or own.decisive is None:
            return Cell(NOTHING)
        found = f"on {percent(own.decisive_share)} of {own.n_slides}"
        return Cell(in_words(own.decisive.median, most), found)

    return cell


def _interval(key: str, digits: int) -> Callable[[RankingNumbers], Cell]:
    def cell(numbers: RankingNumbers) -> Cell:
        interval: Interval | None = getattr(numbers, key)
        if interval is None or interval.estimate is None:
            return Cell(NOTHING)
        return Cell(fixed(interval.estimate, digits), spread(interval, digits))

    return cell


def _efficiency(numbers: RankingNumbers) -> Cell:
    """How near to the proven minimum, and on how many slides there is one."""
    decided = numbers.decided
    if decided is None or decided.efficiency is None:
        return Cell(NOTHING)
    ends, slides = spread(decided.efficiency, 2), counted(decided.efficiency_n, "slide")
    beyond = decided.efficiency_beyond
    slides += f"; {beyond} beyond the last count" if beyond else ""
    return Cell(fixed(decided.efficiency.estimate, 2), f"{ends}; {slides}" if ends else slides)


def _excess(numbers: RankingNumbers) -> Cell:
    """Tiles beyond the proven minimum, on slides that have both."""
    decided = numbers.decided
    if decided is None or decided.excess is None:
        return Cell(NOTHING)
    return Cell(tiles(decided.excess), f"at most {tiles(decided.excess_max)}")


def _area(numbers: RankingNumbers) -> Cell:
    """The area under the curve, and how far a grid of counts may be off."""
    cell, counts = _interval("aukc", 3)(numbers), numbers.counts
    return cell if counts.insertion == "dense" else cell.noted(f"grid, ±{counts.aukc_error:.3f}")


def _shares(key: str) -> Callable[[RankingNumbers], Cell]:
    def cell(numbers: RankingNumbers) -> Cell:
        interval: Interval = getattr(numbers, key)
        return Cell(percent(interval.estimate), percent_ends(interval))

    return cell


def _share(key: str) -> Callable[[RankingNumbers], Cell]:
    return lambda numbers: Cell(percent(getattr(numbers, key)))


def _single(key: str, digits: int) -> Callable[[RankingNumbers], Cell]:
    return lambda numbers: Cell(fixed(getattr(numbers, key), digits))


def _kept(key: str) -> Callable[[RankingNumbers], Cell]:
    """An AUC with few tiles kept, and on how many slides those are the whole bag."""

    def cell(numbers: RankingNumbers) -> Cell:
        kept = numbers.selected_only
        if kept is None:
            return Cell(NOTHING)
        whole = f"whole bag on {kept.n_whole} of {kept.n_slides}" if kept.n_whole else ""
        return Cell(fixed(getattr(kept, key)), whole if key == "auc" else "")

    return cell


def _paired(numbers: RankingNumbers) -> Cell:
    paired = numbers.paired
    if paired is None or paired.base is None:
        return Cell(NOTHING)
    return Cell(f"{tiles(paired.base)} → {tiles(paired.foci)}", counted(paired.n_both, "slide"))


def _pvalue(numbers: RankingNumbers) -> Cell:
    test = numbers.wilcoxon
    if test is None or test.pvalue is None:
        return Cell(NOTHING)
    differ = f"{counted(test.n_pairs, 'patient')} differ{'s' * (test.n_pairs == 1)}"
    return Cell(p_value(test.pvalue).removeprefix("p ").removeprefix("= "), differ)
