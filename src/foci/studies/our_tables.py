"""The paper's four hypotheses as numbers: rank correlations over (backbone, cohort) pairs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from foci.metrics import spearman, wilcoxon
from foci.studies.paper_tables import shi_of
from foci.studies.published import COHORTS, PublishedNumber, PublishedNumbers
from foci.studies.read import (
    NATIVE,
    SELECTOR,
    AuditReading,
    Measure,
    Numbers,
    Place,
    StudyNumbers,
    Value,
    combine,
)
from foci.studies.table import SRP, Cell, Column, Row, Table, shown, srp_values

SOFT = "paper-soft"
NUMBER = Column("number", "number", 3, signed=True)
PAIRS = Column("pairs", "pairs", 0)
READ = Column("read", "how to read it", 0)
Of = Callable[[Place], Value]


def hypotheses_table(numbers: StudyNumbers, paper: PublishedNumbers | None) -> Table:
    """H1 to H4, each with the number of pairs behind it."""
    places = [
        Place(cohort, backbone) for backbone in numbers.backbones for cohort in numbers.cohorts
    ]
    auc = _of(numbers, Measure("auc"))
    base = _of(numbers, Measure("msk_cond", NATIVE))

    def saving(place: Place) -> Value:
        return shi_of(numbers, place)

    gains = {
        "SHI": saving,
        "deletion gain": _gain(numbers, lambda r: Measure("slide_faithfulness", r)),
        "selected-only gain": _gain(numbers, lambda r: Measure("selected_auc", r, k=32)),
    }
    rows = [
        _row("H1", "AUC and SHI", _correlation(places, auc, saving), "near 0: AUC does not tell"),
        _row(
            "H2",
            "native MSK and SHI",
            _correlation(places, base, saving),
            "positive: a long native ranking leaves room; partly built in, SHI contains MSK",
            _of_the_paper(paper),
        ),
    ]
    named = list(gains.items())
    rows += [
        _row(
            "H3", f"{a} and {b}", _correlation(places, f, g), "1: interchangeable; 0: complementary"
        )
        for i, (a, f) in enumerate(named)
        for b, g in named[i + 1 :]
    ]
    rows += _soft_rows(numbers)
    return Table(
        label="hypotheses",
        title="The paper's hypotheses on these cohorts",
        heads=("", "What"),
        columns=(NUMBER, PAIRS, READ),
        rows=tuple(rows),
        notes=(
            "H1 to H3: Spearman's rank correlation over (backbone, cohort) pairs, on means over "
            "seeds. Gains are selector minus native: mean area of the deletion drops per slide, "
            "and AUC with 32 tiles. H4: STE minus Soft, seed by seed.",
        ),
    )


def _row(
    name: str,
    what: str,
    cells: Mapping[str, Cell],
    read: str,
    paper: PublishedNumber | None = None,
) -> Row:
    number = cells["number"]
    shown_ = {**cells, "number": Cell(number.value, paper), "read": Cell(Value(None), text=read)}
    return Row((name, what), shown_)


def _of(numbers: StudyNumbers, measure: Measure) -> Of:
    return lambda place: numbers.value(place, measure)


def _gain(numbers: StudyNumbers, measure: Callable[[str], Measure]) -> Of:
    def gain(place: Place) -> Value:
        own, base = (numbers.value(place, measure(name)) for name in (SELECTOR, NATIVE))
        return combine(operator.sub, own, base)

    return gain


def _correlation(places: list[Place], first: Of, second: Of) -> dict[str, Cell]:
    pairs = [(first(place).mean, second(place).mean) for place in places]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    count = Cell(Value(float(len(known)), n=len(known)))
    if len(known) < 3:
        return {"number": Cell(Value.absent("fewer than three pairs")), "pairs": count}
    rho = float(spearman(*map(list, zip(*known, strict=True))))
    value = Value.over({"rho": rho}) if rho == rho else Value.absent("one of them is constant")
    return {"number": Cell(Value(value.mean, gaps=value.gaps, n=len(known))), "pairs": count}


def _of_the_paper(paper: PublishedNumbers | None) -> PublishedNumber | None:
    """H2 from the paper's own main and SHI tables."""
    if paper is None:
        return None
    cells = [c for c in paper.table("shi") if c.cohort in COHORTS]
    base = [paper.get("main", c.cohort, c.row, "msk_cond") for c in cells]
    counts = [one.mean for one in base if one is not None]
    rho = float(spearman(counts, [cell.mean for cell in cells]))
    return PublishedNumber("hypotheses", "all", "H2", "number", rho, None, 3, 3)


def _soft_rows(numbers: StudyNumbers) -> list[Row]:
    rows = []
    for place in numbers.audits:
        if place.variant != SOFT:
            continue
        soft = srp_values(numbers, place, SELECTOR)
        hard = srp_values(numbers, Place(place.cohort, place.backbone), SELECTOR)
        for column in SRP:
            value = combine(operator.sub, hard[column.key], soft[column.key])
            what = f"{column.head}, STE - Soft, {shown(place.backbone)} on {shown(place.cohort)}"
            read = f"{'below' if column.better == 'lower' else 'above'} 0: STE is better"
            pairs = Cell(Value(float(value.n), n=value.n))
            rows.append(_row("H4", what, {"number": Cell(value), "pairs": pairs}, read))
    return rows


# Control: AUC on the validation slides when classifier and selector are trained together.


def joint_table(numbers: StudyNumbers) -> Table:
    """AUC before, after every epoch, and the loss at the end in points."""
    longest = max(
        (len(run) for runs in numbers.joint.values() for run in runs.values() if run), default=1
    )
    epochs = range(1, longest)
    rows = []
    for place, runs in numbers.joint.items():
        after: dict[str, Value] = {}
        for epoch in range(longest):
            readings = {s: run if isinstance(run, str) else run[epoch] for s, run in runs.items()}
            after["before" if epoch == 0 else f"epoch_{epoch}"] = numbers.over(readings)
        lost = {
            seed: run if isinstance(run, str) else 100 * (run[0] - run[-1])
            for seed, run in runs.items()
        }
        cells = {name: Cell(value) for name, value in after.items()}
        cells["points"] = Cell(numbers.over(lost))
        rows.append(Row((shown(place.cohort), shown(place.backbone)), cells))
    return Table(
        label="joint",
        title="Joint training of classifier and selector: validation AUC by epoch",
        heads=("Dataset", "Backbone"),
        columns=(
            Column("before", "frozen", 3),
            *(Column(f"epoch_{epoch}", f"after epoch {epoch}", 3) for epoch in epochs),
            Column("points", "loss in points", 1),
        ),
        rows=tuple(rows),
        notes=(
            "The paper reports a pilot run on NSCLC with TransMIL that lost more than 15 points of "
            "validation AUC within two epochs.",
        ),
    )


# Paired tests of selector against native ranking over (cohort, seed) pairs, per backbone.


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


# Is the classifier unchanged? Full-bag answers of every audit of a model, and its weights.


COLUMNS = (
    Column("trained_auc", "AUC when trained", 4),
    Column("auc", "AUC with a selector", 4),
    Column("difference", "difference", 4, signed=True),
    Column("audits", "audits of the same weights", 0),
    Column("largest", "largest difference of p between them", 9),
)


def preservation_table(numbers: StudyNumbers) -> Table:
    """Full-bag AUC before and after a selector was fitted, and answers across all variants."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            place = Place(cohort, backbone)
            trained = numbers.over(numbers.trained.get(place, {}))
            if not numbers.trained.get(place):
                trained = Value.absent("no AUC was noted when it was trained")
            now = numbers.value(place, Measure("auc"))
            shared = [seed for seed in now.seeds if seed in trained.seeds]
            lost = {seed: now.seeds[seed] - trained.seeds[seed] for seed in shared}
            same, largest = _answers(numbers, place)
            known = numbers.over(lost) if lost else Value.absent("one of them is missing")
            cells = {
                "trained_auc": Cell(trained),
                "auc": Cell(now),
                "difference": Cell(known),
                "audits": Cell(Value(float(same), n=same)),
                "largest": Cell(largest),
            }
            rows.append(Row((shown(backbone),), cells, shown(cohort)))
    return Table(
        label="preservation",
        title="The classifier is unchanged: full-bag answers before and after fitting a selector",
        heads=("Backbone",),
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(
            "The main audit and those of the variants hold the same full-bag answers of the same "
            "weights; the last column is the largest difference of a probability between them. "
            "An audit whose classifier has other weights would be named here.",
        ),
    )


def _answers(numbers: StudyNumbers, place: Place) -> tuple[int, Value]:
    """Number of audits of the models of a place, and the largest difference between answers."""
    largest: dict[str, float] = {}
    gaps: dict[str | None, str] = {}
    count = 0
    for seed, main in numbers.read(place).items():
        others = [main, *_variants(numbers, place, seed)]
        count += len(others)
        foreign = [one for one in others if one.facts.fingerprint != main.facts.fingerprint]
        if foreign:
            gaps[seed] = f"{len(foreign)} audits are of other weights"
            continue
        largest[seed] = max(float(np.abs(one.facts.full - main.facts.full).max()) for one in others)
    return count, Value.over(largest, gaps) if largest or gaps else Value.absent("no audit")


def _variants(numbers: StudyNumbers, place: Place, seed: str) -> list[AuditReading]:
    """Audits of the same model and the same tiles with other selectors."""
    found = []
    for other in numbers.audits:
        same = (other.cohort, other.backbone, other.n_cap) == (place.cohort, place.backbone, None)
        if same and other != place and seed in numbers.read(other):
            found.append(numbers.read(other)[seed])
    return found
