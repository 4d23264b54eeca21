"""All tables of a study: the paper's, then ours, written as CSV, Markdown and LaTeX.

Ours ask what the paper does not print: paired tests, its hypotheses as numbers, whether the
classifier is unchanged, and what joint training costs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from foci.audits.settings import NATIVE, PAPER, PROFILES, SELECTOR
from foci.files.atomic import write_whole
from foci.metrics import spearman, wilcoxon
from foci.studies.paper_tables import paper_tables, shi_of
from foci.studies.plan import StudyFolder
from foci.studies.read import (
    COHORTS,
    Measure,
    Place,
    PublishedNumber,
    PublishedNumbers,
    Reading,
    StudyNumbers,
    Value,
    combine,
    read_numbers,
)
from foci.studies.study import Study
from foci.studies.table import (
    SRP,
    Cell,
    Column,
    Row,
    Table,
    cells,
    document,
    shown,
    srp_values,
    to_csv,
    to_latex,
    to_markdown,
)
from foci.words import counted

FOLDER, DOCUMENT = "tables", "all.tex"

TEST_SLIDES = {"nsclc": 209, "brca": 223, "panda": 2123}
ENCODER, N_CAP, SEEDS, EPOCHS = "UNI2-h", 1024, 3, 20
COMPARED = ("recipe", "fit_target", "kappa", "k_max", "deletion", "choose_by")
"""Settings of an audit that the paper fixes."""


@dataclass(frozen=True, eq=False)
class StudyTables:
    """The tables of a study, ours last, what differs from the paper, and what was read."""

    numbers: StudyNumbers
    header: tuple[str, ...]
    tables: tuple[Table, ...]


def write(folder: StudyFolder | str | Path) -> StudyTables:
    """Make all tables and write them into ``tables/`` as CSV, Markdown and LaTeX.

    ``tables/all.tex`` is a document that includes every table.
    """
    opened = folder if isinstance(folder, StudyFolder) else StudyFolder(folder)
    made = build(opened)
    out = opened.path / FOLDER
    out.mkdir(parents=True, exist_ok=True)
    for table in made.tables:
        write_whole(out / f"{table.label}.csv", to_csv(table), durable=False)
        write_whole(out / f"{table.label}.md", to_markdown(table, made.header), durable=False)
        write_whole(out / f"{table.label}.tex", to_latex(table, made.header), durable=False)
    write_whole(out / DOCUMENT, document(table.label for table in made.tables), durable=False)
    return made


def build(folder: StudyFolder) -> StudyTables:
    """Read all finished cells and make every table that has a row."""
    study, numbers = folder.study, read_numbers(folder)
    made = (
        *paper_tables(study, numbers),
        tests_table(numbers),
        hypotheses_table(numbers),
        preservation_table(numbers),
        joint_table(numbers),
    )
    header = (
        *_cohorts_unlike_paper(numbers),
        *_classifiers_unlike_paper(study),
        *_settings_unlike_paper(study),
        "A z compares means over seeds of different slides and models: it says how far apart two "
        "numbers are in units of their spread over seeds, and nothing about patients.",
    )
    return StudyTables(numbers, header, tuple(table for table in made if table.rows))


# What differs from the paper's setting, in sentences that stand above every table


def _cohorts_unlike_paper(numbers: StudyNumbers) -> Iterator[str]:
    for cohort in numbers.cohorts:
        main = (numbers.read(Place(cohort, backbone)) for backbone in numbers.backbones)
        audit = next((one for by_seed in main for one in by_seed.values()), None)
        if audit is None:
            continue
        same = "not a cohort of the paper"
        if cohort in TEST_SLIDES:
            same = f"the paper's {shown(cohort)}: {TEST_SLIDES[cohort]}"
        encoder = audit.encoder or "an encoder that the files do not name"
        patients = counted(len(set(audit.slides.cases)), "patient")
        yield (
            f"{shown(cohort)}: {counted(len(audit.slides), 'test slide')} ({same}) of "
            f"{patients}, features of {encoder} (the paper: {ENCODER}), "
            f"a median of {np.median(audit.slides.n_tiles):g} tiles; 32 tiles are "
            f"{audit.numbers[Measure('share_32')]:.0f} % of a bag on average."
        )
    absent = [shown(cohort) for cohort in COHORTS if cohort not in numbers.cohorts]
    if absent:
        yield f"Of the paper's cohorts, not in this study: {', '.join(absent)}."


def _classifiers_unlike_paper(study: Study) -> Iterator[str]:
    names: dict[str, list[str]] = {}
    for name, entry in study.backbones.items():
        other = dict(entry.training)
        epochs = other.pop("epochs", EPOCHS)
        for differs, what in (
            (entry.models, "ready-made checkpoints instead of training in this study"),
            (entry.preset != "paper", f"preset {entry.preset!r} instead of the paper's"),
            (entry.widths, f"widths {_listed(entry.widths)} instead of the paper's"),
            (
                epochs != EPOCHS,
                f"{counted(epochs, 'epoch')} of training (the paper's TransMIL: {EPOCHS})",
            ),
            (other, f"trained with {_listed(other)}"),
        ):
            if differs:
                names.setdefault(what, []).append(shown(name))
    for what, own in names.items():
        yield f"{', '.join(own)}: {what}."


def _settings_unlike_paper(study: Study) -> Iterator[str]:
    own = study.settings(study.seeds[0])
    if len(study.seeds) != SEEDS:
        yield f"{counted(len(study.seeds), 'seed')} instead of {SEEDS}."
    if study.n_cap != N_CAP:
        yield f"At most {study.n_cap} tiles per bag instead of {N_CAP}."
    if study.std != "population":
        yield "± is the sample standard deviation over seeds; the paper prints the population's."
    paper = own.model_copy(update=dict(PROFILES[PAPER]))
    for name in COMPARED:
        field = "fitted_for" if name == "fit_target" else name
        values = getattr(own, field), getattr(paper, field)
        if values[0] != values[1]:
            here, there = (
                ", ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values
            )
            yield f"{name} is {here}; the paper's is {there}."
    if own.recipe_settings:
        yield f"The recipe of the selector has {_listed(own.recipe_settings)}."


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


# Paired tests of selector against native ranking over (cohort, seed) pairs, per backbone


def tests_table(numbers: StudyNumbers) -> Table:
    """Exact two-sided Wilcoxon signed-rank test of MSK_cond and of AUKC."""
    metrics = (("msk", "msk_cond", "MSK", 2), ("aukc", "aukc", "AUKC", 4))
    rows, columns = [], []
    every = [*numbers.backbones]
    for name, backbones in [*((b, [b]) for b in every), ("all backbones", every)]:
        values: dict[str, Value] = {}
        for short, metric, _, _ in metrics:
            found = compared_pairs(*_pairs_of(numbers, backbones, metric))
            values |= {f"{short}_{key}": value for key, value in found.items()}
        rows.append(Row((shown(name),), cells(numbers, values, "tests", "all", name)))
    for short, _, head, digits in metrics:
        columns += [
            Column(f"{short}_pairs", f"{head}: pairs that differ", 0),
            Column(f"{short}_median_difference", f"{head}: median difference", digits),
            Column(f"{short}_statistic", f"{head}: W", 1),
            Column(f"{short}_pvalue", f"{head}: p", 4, positive=True),
        ]
    return Table(
        label="tests",
        title="Selector against the backbone's own ranking over (cohort, seed) pairs",
        heads=("Backbone",),
        columns=columns,
        rows=rows,
        notes=(
            "Two-sided Wilcoxon signed-rank test, exact up to 50 pairs. Seeds of one cohort share "
            "its slides and cohorts are few: the p-value describes these runs, not all cohorts. "
            "Nine pairs cannot give less than 0.0039.",
        ),
    )


def _pairs_of(
    numbers: StudyNumbers, backbones: Sequence[str], metric: str
) -> tuple[list[float], list[float]]:
    """Native and selector of every cohort and seed that has both."""
    base, foci = [], []
    for backbone, cohort in product(backbones, numbers.cohorts):
        before, after = (
            numbers.value(Place(cohort, backbone), Measure(metric, ranking)).seeds
            for ranking in (NATIVE, SELECTOR)
        )
        shared = [seed for seed in before if seed in after]
        base += [before[seed] for seed in shared]
        foci += [after[seed] for seed in shared]
    return base, foci


def compared_pairs(base: Sequence[float], foci: Sequence[float]) -> dict[str, Value]:
    """Number of pairs, median difference, W and p of the test."""
    names = ("pairs", "median_difference", "statistic", "pvalue")
    if not base:
        return dict.fromkeys(names, Value.absent("no pair was measured"))
    result = wilcoxon(base, foci)
    found = (result.n_pairs, result.median_difference, result.statistic, result.pvalue)
    values = (Value(float(number), n=len(base)) for number in found)
    return dict(zip(names, values, strict=True))


# The paper's four hypotheses as numbers: rank correlations over (backbone, cohort) pairs


Of = Callable[[Place], Value]


def hypotheses_table(numbers: StudyNumbers) -> Table:
    """H1 to H4, each with the number of pairs behind it."""

    def of(measure: Measure) -> Of:
        return lambda place: numbers.value(place, measure)

    def gain(metric: str, k: int | None = None) -> Of:
        own, base = (of(Measure(metric, ranking, k=k)) for ranking in (SELECTOR, NATIVE))
        return lambda place: combine(operator.sub, own(place), base(place))

    def saving(place: Place) -> Value:
        return shi_of(numbers, place)

    rows = []

    def add(
        name: str, what: str, found: tuple[Value, int], read: str,
        paper: PublishedNumber | None = None,
    ) -> None:  # fmt: skip
        value, pairs = found
        own = {
            "number": Cell(value, paper),
            "pairs": Cell(Value(float(pairs), n=pairs)),
            "read": Cell(Value(None), text=read),
        }
        rows.append(Row((name, what), own))

    add(
        "H1",
        "AUC and SHI",
        _correlation(numbers, of(Measure("auc")), saving),
        "near 0: AUC does not tell",
    )
    add(
        "H2",
        "native MSK and SHI",
        _correlation(numbers, of(Measure("msk_cond", NATIVE)), saving),
        "positive: a long native ranking leaves room; partly built in, SHI contains MSK",
        _h2_of_the_paper(numbers.paper),
    )
    gains = [
        ("SHI", saving),
        ("deletion gain", gain("slide_faithfulness")),
        ("selected-only gain", gain("selected_auc", k=32)),
    ]
    for (a, first), (b, second) in combinations(gains, 2):
        found = _correlation(numbers, first, second)
        add("H3", f"{a} and {b}", found, "1: interchangeable; 0: complementary")
    for place in numbers.audits:
        if place.variant != "paper-soft":
            continue
        soft = srp_values(numbers, place, SELECTOR)
        hard = srp_values(numbers, Place(place.cohort, place.backbone), SELECTOR)
        for column in SRP:
            value = combine(operator.sub, hard[column.key], soft[column.key])
            what = f"{column.head}, STE - Soft, {shown(place.backbone)} on {shown(place.cohort)}"
            read = f"{'below' if column.better == 'lower' else 'above'} 0: STE is better"
            add("H4", what, (value, value.n), read)
    return Table(
        label="hypotheses",
        title="The paper's hypotheses on these cohorts",
        heads=("", "What"),
        columns=(
            Column("number", "number", 3, signed=True),
            Column("pairs", "pairs", 0),
            Column("read", "how to read it", 0),
        ),
        rows=rows,
        notes=(
            "H1 to H3: Spearman's rank correlation over (backbone, cohort) pairs, on means over "
            "seeds. Gains are selector minus native: mean area of the deletion drops per slide, "
            "and AUC with 32 tiles. H4: STE minus Soft, seed by seed.",
        ),
    )


def _correlation(numbers: StudyNumbers, first: Of, second: Of) -> tuple[Value, int]:
    """Spearman's correlation over the pairs that have both numbers, and how many these are."""
    pairs = product(numbers.backbones, numbers.cohorts)
    places = [Place(cohort, backbone) for backbone, cohort in pairs]
    means = [(first(place).mean, second(place).mean) for place in places]
    known = [(a, b) for a, b in means if a is not None and b is not None]
    if len(known) < 3:
        return Value.absent("fewer than three pairs"), len(known)
    rho = float(spearman(*map(list, zip(*known, strict=True))))
    if np.isnan(rho):
        return Value(None, gaps={None: "one of them is constant"}, n=len(known)), len(known)
    return Value(rho, n=len(known)), len(known)


def _h2_of_the_paper(paper: PublishedNumbers) -> PublishedNumber | None:
    """H2 from the paper's own main and SHI tables."""
    if not paper:
        return None
    savings = {
        (cohort, row): printed.mean
        for (label, cohort, row, _), printed in paper.items()
        if label == "shi" and cohort in COHORTS
    }
    counts = [paper["main", *pair, "msk_cond"].mean for pair in savings]
    return PublishedNumber(float(spearman(counts, [*savings.values()])), None, 3, 3)


# Controls: is the classifier unchanged, and what does training it with the selector cost?


def preservation_table(numbers: StudyNumbers) -> Table:
    """Full-bag AUC before and after a selector was fitted, and answers across all variants."""
    rows = []
    for place in numbers.places:
        trained = Value.absent("no AUC was noted when it was trained")
        if numbers.trained.get(place):
            trained = numbers.over(numbers.trained[place])
        now = numbers.value(place, Measure("auc"))
        shared = [seed for seed in now.seeds if seed in trained.seeds]
        difference = Value.absent("one of them is missing")
        if shared:
            difference = numbers.over({s: now.seeds[s] - trained.seeds[s] for s in shared})
        same, largest = _answers(numbers, place)
        values = {
            "trained_auc": trained,
            "auc": now,
            "difference": difference,
            "audits": Value(float(same), n=same),
            "largest": largest,
        }
        own = {column: Cell(value) for column, value in values.items()}
        rows.append(Row((shown(place.backbone),), own, shown(place.cohort)))
    return Table(
        label="preservation",
        title="The classifier is unchanged: full-bag answers before and after fitting a selector",
        heads=("Backbone",),
        columns=(
            Column("trained_auc", "AUC when trained", 4),
            Column("auc", "AUC with a selector", 4),
            Column("difference", "difference", 4, signed=True),
            Column("audits", "audits of the same weights", 0),
            Column("largest", "largest difference of p between them", 9),
        ),
        rows=rows,
        notes=(
            "The main audit and those of the variants hold the same full-bag answers of the same "
            "weights; the last column is the largest difference of a probability between them. "
            "An audit whose classifier has other weights would be named here.",
        ),
    )


def _answers(numbers: StudyNumbers, place: Place) -> tuple[int, Value]:
    """Number of audits of the models of a place, and the largest difference between answers."""
    variants = [numbers.read(other) for other in numbers.variants(place) if other.n_cap is None]
    readings: dict[str, Reading] = {}
    count = 0
    for seed, main in numbers.read(place).items():
        audits = [own[seed] for own in variants if seed in own]
        count += len(audits)
        foreign = [one for one in audits if one.fingerprint != main.fingerprint]
        if foreign:
            readings[seed] = f"{len(foreign)} audits are of other weights"
        else:
            apart = [np.abs(one.slides.full - main.slides.full).max() for one in audits]
            readings[seed] = float(max(apart))
    return count, Value.over(readings) if readings else Value.absent("no audit")


def joint_table(numbers: StudyNumbers) -> Table:
    """AUC before joint training, after every epoch, and the loss at the end in points."""
    found = [run for runs in numbers.joint.values() for run in runs.values()]
    longest = max((len(run) for run in found if not isinstance(run, str)), default=1)
    columns = [Column("before", "frozen", 3)]
    columns += [Column(f"epoch_{i}", f"after epoch {i}", 3) for i in range(1, longest)]
    rows = []
    for place, runs in numbers.joint.items():

        def over(number: Callable[[Sequence[float]], float], runs: Any = runs) -> Cell:
            readings = {s: run if isinstance(run, str) else number(run) for s, run in runs.items()}
            return Cell(numbers.over(readings))

        own = {c.key: over(operator.itemgetter(epoch)) for epoch, c in enumerate(columns)}
        own["points"] = over(lambda run: 100 * (run[0] - run[-1]))
        rows.append(Row((shown(place.cohort), shown(place.backbone)), own))
    return Table(
        label="joint",
        title="Joint training of classifier and selector: validation AUC by epoch",
        heads=("Dataset", "Backbone"),
        columns=(*columns, Column("points", "loss in points", 1)),
        rows=rows,
        notes=(
            "The paper reports a pilot run on NSCLC with TransMIL that lost more than 15 points of "
            "validation AUC within two epochs.",
        ),
    )
