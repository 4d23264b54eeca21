"""tab:kappa_sensitivity: the same curves read at other operating confidences."""

from __future__ import annotations

from collections.abc import Sequence

from foci.studies.published import PublishedNumbers
from foci.studies.readings.measures import NATIVE, SELECTOR, Place
from foci.studies.readings.numbers import Numbers
from foci.studies.tables.columns import RESTRICTED, SRP, cells, srp_values
from foci.studies.tables.naming import WITH, primary, shown
from foci.studies.tables.table import Row, Table

LABEL = "kappa_sensitivity"


def kappa_table(numbers: Numbers, paper: PublishedNumbers | None, kappas: Sequence[float]) -> Table:
    """Selector (the paper's rows) and native ranking of the primary backbone at every kappa."""
    backbone = primary(numbers.backbones)
    rows = []
    for cohort in numbers.cohorts:
        for ranking, name in ((SELECTOR, f" {WITH}"), (NATIVE, "")):
            for kappa in kappas:
                values = srp_values(numbers, Place(cohort, backbone), ranking, kappa=kappa)
                printed = paper if ranking == SELECTOR and backbone == "transmil" else None
                own = cells(values, printed, LABEL, cohort, f"{kappa:g}")
                rows.append(Row((shown(backbone) + name, f"{kappa:g}"), own, shown(cohort)))
    return Table(
        label=LABEL,
        title="Sensitivity to the operating confidence κ",
        heads=("Method", "κ"),
        columns=(*SRP, RESTRICTED),
        rows=tuple(rows),
        notes=("AUKC does not depend on kappa. MSK_cond has other slides at every kappa.",),
    )
