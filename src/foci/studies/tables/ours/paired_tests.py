"""Paired tests of selector against native ranking over (cohort, seed) pairs, per backbone."""

from __future__ import annotations

from collections.abc import Sequence

from foci.metrics import wilcoxon
from foci.studies.published import PublishedNumber, PublishedNumbers
from foci.studies.readings.measures import NATIVE, SELECTOR, Measure, Place
from foci.studies.readings.numbers import Numbers
from foci.studies.readings.values import Value
from foci.studies.tables.naming import shown
from foci.studies.tables.table import Cell, Column, Row, Table

LABEL = "tests"
METRICS = (("msk", "msk_cond", "MSK", 2), ("aukc", "aukc", "AUKC", 4))
ALL = "all backbones"


def pairs_of(
    numbers: Numbers, backbones: Sequence[str], metric: str
) -> tuple[list[float], list[float]]:
    """Native and selector of every cohort and seed that has both."""
    base, foci = [], []
    for backbone in backbones:
        for cohort in numbers.cohorts:
            before, after = (
                numbers.value(Place(cohort, backbone), Measure(metric, ranking)).seeds
                for ranking in (NATIVE, SELECTOR)
            )
            shared = [seed for seed in before if seed in after]
            base += [before[seed] for seed in shared]
            foci += [after[seed] for seed in shared]
    return base, foci


def tests_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """Exact two-sided Wilcoxon signed-rank test of MSK_cond and of AUKC."""
    rows = []
    for name, backbones in [*((b, [b]) for b in numbers.backbones), (ALL, [*numbers.backbones])]:
        cells: dict[str, Cell] = {}
        for short, metric, _, _ in METRICS:
            cells |= compared_pairs(short, *pairs_of(numbers, backbones, metric))
        if paper is not None:
            cells = {
                key: Cell(cell.value, _printed(paper, name, key)) for key, cell in cells.items()
            }
        rows.append(Row((shown(name),), cells))
    columns = [
        column
        for short, _, head, digits in METRICS
        for column in (
            Column(f"{short}_pairs", f"{head}: pairs that differ", 0),
            Column(f"{short}_median_difference", f"{head}: median difference", digits),
            Column(f"{short}_statistic", f"{head}: W", 1),
            Column(f"{short}_pvalue", f"{head}: p", 4, positive=True),
        )
    ]
    return Table(
        label=LABEL,
        title="Selector against the backbone's own ranking over (cohort, seed) pairs",
        heads=("Backbone",),
        columns=tuple(columns),
        rows=tuple(rows),
        notes=(
            "Two-sided Wilcoxon signed-rank test, exact up to 50 pairs. Seeds of one cohort share "
            "its slides and cohorts are few: the p-value describes these runs, not all cohorts. "
            "Nine pairs cannot give less than 0.0039.",
        ),
    )


def compared_pairs(short: str, base: Sequence[float], foci: Sequence[float]) -> dict[str, Cell]:
    """Median difference, W, p and number of pairs as cells."""
    names = ("pairs", "median_difference", "statistic", "pvalue")
    if not base:
        return {f"{short}_{name}": Cell(Value.absent("no pair was measured")) for name in names}
    result = wilcoxon(base, foci)
    found = (result.n_pairs, result.median_difference, result.statistic, result.pvalue)
    return {
        f"{short}_{name}": Cell(Value(float(number), n=len(base)))
        for name, number in zip(names, found, strict=True)
    }


def _printed(paper: PublishedNumbers, backbone: str, column: str) -> PublishedNumber | None:
    return paper.get(LABEL, "all", backbone, column)
