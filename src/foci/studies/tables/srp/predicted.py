"""tab:predicted_class_srp: reveal numbers that follow the model's own prediction."""

from __future__ import annotations

from foci.studies.published import FOCI, PublishedNumbers
from foci.studies.readings.measures import NATIVE, SELECTOR, Measure, Place
from foci.studies.readings.numbers import Numbers
from foci.studies.readings.values import combine
from foci.studies.tables.columns import AUKC, MSK, cells
from foci.studies.tables.naming import WITH, shown
from foci.studies.tables.table import Column, Row, Table

LABEL = "predicted_class_srp"
REACH = Column("reach", "Reach (share)", 3, "higher")


def predicted_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """Every backbone, native and selector; the paper prints TransMIL."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            for ranking, end, name in ((NATIVE, "", ""), (SELECTOR, FOCI, f" {WITH}")):
                values = {
                    metric: numbers.value(
                        Place(cohort, backbone), Measure(metric, ranking, "prediction")
                    )
                    for metric in ("reach", "msk_cond", "aukc")
                }
                values["reach"] = combine(lambda percent: percent / 100, values["reach"])
                own = cells(values, paper, LABEL, cohort, backbone + end)
                rows.append(Row((shown(backbone) + name,), own, shown(cohort)))
    return Table(
        label=LABEL,
        title="Reveal results for the predicted class: is the model's own decision recovered?",
        heads=("Method",),
        columns=(REACH, MSK, AUKC),
        rows=tuple(rows),
        notes=("Correctness is not asked for here, so that Reach is higher than in label view.",),
    )
