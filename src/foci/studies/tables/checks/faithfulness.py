"""tab:faithfulness, tab:faithfulness_xds: loss of the label's probability without the top tiles."""

from __future__ import annotations

from foci.metrics.curve.deletion import PAPER_COUNTS
from foci.studies.published import FOCI, PublishedNumbers
from foci.studies.readings.measures import NATIVE, RANDOM, SELECTOR, Measure, Place
from foci.studies.readings.numbers import Numbers
from foci.studies.tables.columns import cells
from foci.studies.tables.naming import WITH, shown
from foci.studies.tables.table import Column, Row, Table

LABEL, ACROSS = "faithfulness", "faithfulness_xds"
ROWS = ((NATIVE, "", ""), (SELECTOR, FOCI, f" {WITH}"), (RANDOM, "+random", " random order (ours)"))
AUC = Column("faithfulness", "Faithfulness AUC", 4, "higher")
DROPS = tuple(Column(f"drop_{k}", f"Δp, K = {k}", 3, "higher") for k in PAPER_COUNTS)
PER_SLIDE = Column("slide_faithfulness", "per slide (ours)", 4, "higher")
LARGE = Column("drop_slides", "slides above 256", 0)
NOTES = (
    "As in the paper, drops are averaged over slides at each count and the area is divided by 256. "
    "A slide has no drop at K unless it has more than K tiles, so that large counts rest on large "
    "slides, and a cohort without slides above 256 tiles has no such area.",
    "Per slide: the area of every slide up to its own last count, averaged.",
)


def faithfulness_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """Faithfulness AUC and its drops, for every backbone with and without selector."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            place = Place(cohort, backbone)
            for ranking, end, name in ROWS:
                values = {
                    f"drop_{k}": numbers.value(place, Measure("drop", ranking, k=k))
                    for k in PAPER_COUNTS
                }
                for metric in ("faithfulness", "slide_faithfulness"):
                    values[metric] = numbers.value(place, Measure(metric, ranking))
                values["drop_slides"] = numbers.value(
                    place, Measure("drop_slides", ranking, k=PAPER_COUNTS[-1])
                )
                own = cells(values, paper, LABEL, cohort, backbone + end)
                rows.append(Row((shown(backbone) + name,), own, shown(cohort)))
    return Table(
        label=LABEL,
        title="Deletion: loss of the label's probability when the top K tiles are removed",
        heads=("Method",),
        columns=(AUC, *DROPS, PER_SLIDE, LARGE),
        rows=tuple(rows),
        notes=NOTES,
    )


def across_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """Faithfulness AUC of every cohort side by side."""
    rows = []
    for backbone in numbers.backbones:
        for ranking, end, name in ROWS:
            own = {}
            for cohort in numbers.cohorts:
                value = numbers.value(Place(cohort, backbone), Measure("faithfulness", ranking))
                found = cells({"faithfulness": value}, paper, ACROSS, cohort, backbone + end)
                own[cohort] = found["faithfulness"]
            rows.append(Row((shown(backbone) + name,), own))
    return Table(
        label=ACROSS,
        title="Faithfulness AUC across cohorts",
        heads=("Method",),
        columns=tuple(Column(cohort, shown(cohort), 4, "higher") for cohort in numbers.cohorts),
        rows=tuple(rows),
        notes=NOTES[:1],
    )
