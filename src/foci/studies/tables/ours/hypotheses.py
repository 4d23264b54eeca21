"""The paper's four hypotheses as numbers: rank correlations over (backbone, cohort) pairs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from foci.metrics import spearman
from foci.studies.published import COHORTS, PublishedNumber, PublishedNumbers
from foci.studies.readings.measures import NATIVE, SELECTOR, Measure, Place
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.readings.values import Value, combine
from foci.studies.tables.columns import SRP, srp_values
from foci.studies.tables.naming import shown
from foci.studies.tables.srp.shi import shi_of
from foci.studies.tables.table import Cell, Column, Row, Table

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
