"""Table of all numbers of a view: a row per measure, a column per ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from foci.audits.analysis.answers.record import CountQuartiles
from foci.audits.analysis.answers.sentences import in_words
from foci.audits.analysis.summary import RankingNumbers, Summary
from foci.audits.records import Interval
from foci.audits.settings import View
from foci.metrics import seed_spread
from foci.reports.text.wording import (
    NOTHING,
    ends_in_words,
    fixed,
    percent,
    percent_ends,
    spread,
    tiles,
)
from foci.words.plural import counted


@dataclass(frozen=True)
class Cell:
    """A formatted number and, in small print below it, its interval or sample size."""

    text: str
    below: str = ""


@dataclass(frozen=True)
class Row:
    """One measure under every ranking; ``metric`` names the card that explains it, if one does."""

    title: str
    hint: str
    metric: str
    cells: tuple[Cell, ...]


def rows_of(summary: Summary, view: View) -> tuple[Row, ...]:
    """Rows of all measures that are defined for at least one ranking."""
    by_ranking = summary.views[view]
    k_max, kappa = summary.k_max, summary.kappa
    measures: list[tuple[str, str, str, Callable[[RankingNumbers], Cell]]] = [
        ("MSK, decided slides", "tiles; median and quartiles",
         "msk", _quartiles("msk", k_max)),
        ("Stable MSK, decided slides", "tiles until the model stays sure",
         "stable_msk", _on_grid(_quartiles("stable", k_max), "insertion")),
        ("Decisive K, decided slides", "tiles that suffice, and the decision flips without them",
         "decisive_k", _on_grid(_quartiles("decisive", k_max, share="decisive_share"), "deletion")),
        ("Decisive K, paper's form", "and at most 0.2 of the probability is left",
         "decisive_k",
         _on_grid(_quartiles("decisive_paper", k_max, share="decisive_paper_share"), "deletion")),
        *(
            (f"Decisive K, {name}", "decided slides that are predicted so",
             "decisive_k", _on_grid(_of_class(name, k_max), "deletion"))
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
        ("AUC, 32 tiles kept", "against the labels",
         "selected_only_auc", _kept("auc")),
        ("AUC, adaptive K kept", "max(16, 3% of N) tiles",
         "selected_only_auc", _kept("adaptive_auc")),
        ("SHI against native", "share of tiles saved",
         "shi", _interval("shi_native", 2)),
        ("SHI against random", "share of tiles saved",
         "shi_against_random", _interval("shi_random", 2)),
        ("Paired MSK", "native and this one, slides that both reach",
         "paired_msk", _paired),
        ("Wilcoxon p", "restricted K against native, by patient",
         "", _pvalue),
        ("Captured headroom", "of what a greedy search finds",
         "captured_headroom", _single("captured", 2)),
    ]  # fmt: skip
    rows = (
        Row(title, hint, metric, tuple(cell(by_ranking[name]) for name in summary.rankings))
        for title, hint, metric, cell in measures
    )
    return tuple(row for row in rows if any(cell.text != NOTHING for cell in row.cells))


@dataclass(frozen=True)
class SeedLine:
    """One measure under every seed (or random order) of one ranking.

    Attributes:
        ranking: The ranking.
        measure: The measure.
        values: One per seed.
        mean: Their mean, with the population standard deviation, as the paper prints it.
    """

    ranking: str
    measure: str
    values: tuple[str, ...]
    mean: str


def seeds_of(summary: Summary, view: View) -> list[SeedLine]:
    """Values of every seed, by ranking and measure, if there is more than one seed."""
    measures = (
        ("restricted", "restricted mean K", 1),
        ("msk_cond", "conditional MSK", 1),
        ("reach", "reach", 2),
        ("aukc", "AUKC", 3),
        ("faithfulness", "faithfulness AUC", 3),
    )
    return [
        _seed_line(ranking, title, getattr(numbers, f"{key}_seeds"), digits)
        for ranking, numbers in summary.views[view].items()
        for key, title, digits in measures
        if len(getattr(numbers, f"{key}_seeds")) > 1
    ]


def _seed_line(ranking: str, title: str, values: Sequence[float | None], digits: int) -> SeedLine:
    known = [value for value in values if value is not None]
    mean = NOTHING
    if len(known) == len(values):
        middle = fixed(sum(known) / len(known), digits)
        mean = f"{middle} ± {fixed(seed_spread(known), digits)}"
    return SeedLine(ranking, title, tuple(fixed(value, digits) for value in values), mean)


def _on_grid(
    cell: Callable[[RankingNumbers], Cell],
    direction: Literal["insertion", "deletion"],
    mark: str | None = None,
) -> Callable[[RankingNumbers], Cell]:
    """The same cell, marked where its number rests on a grid of counts."""

    def marked(numbers: RankingNumbers) -> Cell:
        own, counts = cell(numbers), numbers.counts
        if own.text == NOTHING or getattr(counts, direction) != "grid":
            return own
        bound = mark or ("grid" if direction == "insertion" else "grid, upper bound")
        return Cell(own.text, f"{own.below}; {bound}" if own.below else bound)

    return marked


def _quartiles(key: str, k_max: int, share: str | None = None) -> Callable[[RankingNumbers], Cell]:
    """A median with its quartiles below, and the share of slides that have a count."""

    def cell(numbers: RankingNumbers) -> Cell:
        quartiles: CountQuartiles | None = getattr(numbers.decided, key, None)
        if quartiles is None:
            return Cell(NOTHING)
        low, median, high = ends_in_words(quartiles, k_max)
        found = "" if share is None else f"; on {percent(getattr(numbers.decided, share))}"
        return Cell(median, f"{low} to {high}{found}")

    return cell


def _of_class(name: str, k_max: int) -> Callable[[RankingNumbers], Cell]:
    """Decisive K on the decided slides of one class, and on how many of them there is one."""

    def cell(numbers: RankingNumbers) -> Cell:
        own = None if numbers.decided is None else numbers.decided.per_class.get(name)
        if own is None or own.decisive is None:
            return Cell(NOTHING)
        found = f"on {percent(own.decisive_share)} of {own.n_slides}"
        return Cell(in_words(own.decisive.median, k_max), found)

    return cell


def _interval(key: str, digits: int) -> Callable[[RankingNumbers], Cell]:
    def cell(numbers: RankingNumbers) -> Cell:
        interval: Interval | None = getattr(numbers, key)
        if interval is None or interval.estimate is None:
            return Cell(NOTHING)
        return Cell(fixed(interval.estimate, digits), spread(interval, digits))

    return cell


def _area(numbers: RankingNumbers) -> Cell:
    """The area under the curve, and how far a grid of counts may be off."""
    cell, counts = _interval("aukc", 3)(numbers), numbers.counts
    if counts.insertion == "dense" or cell.text == NOTHING:
        return cell
    error = f"grid, ±{counts.aukc_error:.3f}"
    return Cell(cell.text, f"{cell.below}; {error}" if cell.below else error)


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
    value = test.pvalue
    n = test.n_pairs
    differ = f"{counted(n, 'patient')} differ{'s' * (n == 1)}"
    return Cell("< 0.001" if value < 0.001 else fixed(value), differ)
