"""tab:kmax32: every backbone with and without selector at a small budget of tiles."""

from __future__ import annotations

from foci.studies.published import FOCI, PublishedNumbers
from foci.studies.readings.measures import NATIVE, RANDOM, SELECTOR, Measure, Place
from foci.studies.readings.numbers import Numbers
from foci.studies.tables.columns import (
    RESTRICTED,
    RESTRICTED_NOTE,
    SHARE,
    SRP,
    cells,
    srp_values,
)
from foci.studies.tables.naming import WITH, shown
from foci.studies.tables.table import Row, Table

BUDGET = 32
ROWS = ((NATIVE, "", ""), (SELECTOR, FOCI, f" {WITH}"), (RANDOM, "+random", " random order (ours)"))


def budget_table(numbers: Numbers, paper: PublishedNumbers | None, budget: int = BUDGET) -> Table:
    """Reveal numbers within ``budget`` tiles, and which share of a bag that budget is."""
    rows = []
    label = f"kmax{budget}"
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            place = Place(cohort, backbone)
            for ranking, end, name in ROWS:
                values = srp_values(numbers, place, ranking, k_max=budget)
                values["share_32"] = numbers.value(place, Measure("share_32"))
                own = cells(values, paper, label, cohort, backbone + end)
                rows.append(Row((shown(backbone) + name,), own, shown(cohort)))
    return Table(
        label=label,
        title=f"At most {budget} tiles revealed, kappa 0.9, label view",
        heads=("Method",),
        columns=(*SRP, RESTRICTED, SHARE),
        rows=tuple(rows),
        notes=(
            RESTRICTED_NOTE,
            "Where 32 tiles are nearly the whole bag, this table says little about compactness: "
            "see the share.",
        ),
    )
