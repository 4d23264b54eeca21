"""tab:main: every backbone under its own ranking and under the selector, one table per cohort."""

from __future__ import annotations

import operator

from foci.studies.published import FOCI, PublishedNumbers
from foci.studies.readings.measures import (
    EVIDENCE,
    NATIVE,
    RANDOM,
    SELECTOR,
    Measure,
    Place,
)
from foci.studies.readings.numbers import Numbers
from foci.studies.readings.values import Value, combine
from foci.studies.tables.columns import (
    AUKC,
    MSK,
    REACH,
    RESTRICTED,
    RESTRICTED_NOTE,
    SRP,
    cells,
    srp_values,
)
from foci.studies.tables.naming import WITH, shown
from foci.studies.tables.table import Column, Row, Table

LABEL = "main"
DELTAS = tuple(
    Column(f"{column.key}_delta", f"Δ {column.head}", column.digits, column.better, signed=True)
    for column in SRP
)
OURS = (
    RESTRICTED,
    Column("decided_k", "K, decided slides", 2, "lower"),
    Column("decisive_k", "decisive K (median)", 1, "lower"),
    Column("decisive_share", "decisive sets (%)", 1, "higher"),
)
RANKINGS = {NATIVE: "", SELECTOR: FOCI, EVIDENCE: "+evidence", RANDOM: "+random"}
"""Rankings by the end of their row's name."""

NAMES = {SELECTOR: WITH, EVIDENCE: "evidence (ours)", RANDOM: "random order (ours)"}
NOTES = (
    "MSK_cond, Reach and AUKC follow the label, as in the paper; differences are against the "
    "backbone's own ranking, seed by seed.",
    RESTRICTED_NOTE,
    "K over decided slides and decisive K follow the model's prediction, over slides of which the "
    "model is at least kappa sure with all tiles; decisive K is the median count of tiles that "
    "suffice and without which the decision flips. Random orders: mean over the orders.",
)


def main_table(numbers: Numbers, cohort: str, paper: PublishedNumbers | None) -> Table:
    """Conditional MSK, Reach, AUKC of one cohort, the selector's differences, and our columns."""
    rows = []
    for backbone in numbers.backbones:
        place = Place(cohort, backbone)
        base = srp_values(numbers, place, NATIVE)
        for ranking, end in RANKINGS.items():
            own = srp_values(numbers, place, ranking)
            if ranking == EVIDENCE and own["aukc"].mean is None:
                continue
            values = {**own, **_ours(numbers, place, ranking)}
            if ranking != NATIVE:
                values |= {
                    f"{c.key}_delta": combine(operator.sub, own[c.key], base[c.key]) for c in SRP
                }
            name = shown(backbone) if ranking == NATIVE else f"{shown(backbone)} {NAMES[ranking]}"
            rows.append(Row((name,), cells(values, paper, LABEL, cohort, backbone + end)))
    return Table(
        label=f"{LABEL}_{cohort}",
        title=f"Reveal results on {shown(cohort)}: each backbone's own ranking, and others",
        heads=("Method",),
        columns=(MSK, REACH, AUKC, *DELTAS, *OURS),
        rows=tuple(rows),
        notes=NOTES,
    )


def _ours(numbers: Numbers, place: Place, ranking: str) -> dict[str, Value]:
    return {
        name: numbers.value(place, Measure(name, ranking, "prediction"))
        for name in ("decided_k", "decisive_k", "decisive_share")
    }
