"""tab:ablation, tab:lambda_ablation: other gates, no rationale loss, one loss left out."""

from __future__ import annotations

from collections.abc import Callable

from foci.studies.published import PublishedNumbers
from foci.studies.readings.measures import MAIN, NATIVE, SELECTOR, Place
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.tables.columns import RESTRICTED, RESTRICTED_NOTE, SRP, cells, srp_values
from foci.studies.tables.naming import shown
from foci.studies.tables.table import Row, Table

GATES = ("freeze-only", "paper-soft")
CONTROL = "freeze-only"


def gate_table(numbers: StudyNumbers, paper: PublishedNumbers | None, recipe: str) -> Table:
    """Native ranking, control without losses, soft gate, and the main recipe."""
    rows = _rows(numbers, paper, "ablation", recipe, lambda variant: variant in GATES, native=True)
    return Table(
        label="ablation",
        title="Gate of the selector",
        heads=("Backbone", "Method"),
        columns=(*SRP, RESTRICTED),
        rows=rows,
        notes=(RESTRICTED_NOTE,),
    )


def loss_table(numbers: StudyNumbers, paper: PublishedNumbers | None, recipe: str) -> Table:
    """Each loss of the main recipe left out or weighted otherwise."""

    def chosen(variant: str) -> bool:
        return variant == CONTROL or variant.startswith(("no-", "lambda."))

    rows = _rows(numbers, paper, "lambda_ablation", recipe, chosen, native=False)
    return Table(
        label="lambda_ablation",
        title="Losses of the selector",
        heads=("Backbone", "Method"),
        columns=(*SRP, RESTRICTED),
        rows=rows,
        notes=(
            RESTRICTED_NOTE,
            "no-x sets the weight of loss x to 0. The paper's freeze-only row has two seeds.",
        ),
    )


def _rows(
    numbers: StudyNumbers,
    paper: PublishedNumbers | None,
    label: str,
    recipe: str,
    chosen: Callable[[str], bool],
    *,
    native: bool,
) -> tuple[Row, ...]:
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            own = [p for p in numbers.audits if (p.cohort, p.backbone) == (cohort, backbone)]
            variants = [p.variant for p in own if chosen(p.variant)]
            if not variants:
                continue
            listed = [(backbone, MAIN, NATIVE)] if native else []
            listed += [(v, v, SELECTOR) for v in variants] + [(recipe, MAIN, SELECTOR)]
            for row, variant, ranking in listed:
                values = srp_values(numbers, Place(cohort, backbone, variant), ranking)
                printed = paper if backbone == "transmil" else None
                name = "own ranking" if ranking == NATIVE else row
                found = cells(values, printed, label, cohort, row)
                rows.append(Row((shown(backbone), name), found, shown(cohort)))
    return tuple(rows)
