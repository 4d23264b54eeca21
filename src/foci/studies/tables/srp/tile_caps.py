"""tab:ncap_sensitivity: the selector on bags that keep fewer or more tiles."""

from __future__ import annotations

from foci.studies.plan.cells import N_CAP
from foci.studies.published import PublishedNumbers
from foci.studies.readings.measures import SELECTOR, Place
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.tables.columns import RESTRICTED, SRP, cells, srp_values
from foci.studies.tables.naming import WITH, shown
from foci.studies.tables.table import Row, Table

LABEL = "ncap_sensitivity"


def cap_table(numbers: StudyNumbers, paper: PublishedNumbers | None, n_cap: int) -> Table:
    """Every tile cap of the sweep beside the study's own, for the backbones that were swept."""
    swept = [place for place in numbers.audits if place.variant == N_CAP]
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            here = [p for p in swept if (p.cohort, p.backbone) == (cohort, backbone)]
            if not here:
                continue
            places = {n_cap: Place(cohort, backbone), **{p.n_cap or 0: p for p in here}}
            for cap in sorted(places):
                values = srp_values(numbers, places[cap], SELECTOR)
                printed = paper if backbone == "transmil" else None
                own = cells(values, printed, LABEL, cohort, str(cap))
                rows.append(Row((f"{shown(backbone)} {WITH}", str(cap)), own, shown(cohort)))
    return Table(
        label=LABEL,
        title="Sensitivity to the number of tiles kept before the audit (n_cap)",
        heads=("Method", "n_cap"),
        columns=(*SRP, RESTRICTED),
        rows=tuple(rows),
        notes=("A bag with fewer tiles than n_cap is the same at every larger cap.",),
    )
