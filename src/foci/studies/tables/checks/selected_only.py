"""tab:selected_only, tab:selected_only_compact: AUC when a classifier sees only the top tiles."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from foci.studies.published import PublishedNumbers
from foci.studies.readings.measures import NATIVE, RANDOM, SELECTOR, Measure, Place
from foci.studies.readings.numbers import Numbers
from foci.studies.readings.values import Value, combine
from foci.studies.tables.columns import SHARE, cells
from foci.studies.tables.naming import WITH, primary, shown
from foci.studies.tables.table import Column, Row, Table

ADAPTIVE_RECIPE = "paper-adaptive"
FULL = Column("full", "full bag", 3, "higher")
KEPT = (
    Column("random_32", "random 32", 3, "higher"),
    Column("native_32", "native 32", 3, "higher"),
    Column("selector_32", "FOCI 32", 3, "higher"),
    Column("adaptive", "FOCI adaptive", 3, "higher"),
)
NOTES = (
    "FOCI adaptive is a selector that was trained with the adaptive budget, read at max(16, 3 % of "
    "N) tiles; FOCI 32 is the main selector. Random: mean over the orders.",
    "A slide with no more than 32 tiles keeps all of them: see the share.",
)


def compact_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """One row per cohort, for the primary backbone."""
    backbone = primary(numbers.backbones)
    rows = tuple(
        Row(
            (shown(cohort),),
            cells(
                selected_values(numbers, cohort, backbone),
                paper,
                "selected_only_compact",
                cohort,
                backbone,
            ),
        )
        for cohort in numbers.cohorts
    )
    return Table(
        label="selected_only_compact",
        title=f"Selected-only AUC of {shown(backbone)}",
        heads=("Dataset",),
        columns=(FULL, *KEPT, SHARE),
        rows=rows,
        notes=NOTES,
    )


def selected_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """Every backbone: AUC with all and with selected tiles, and the differences."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            values = selected_values(numbers, cohort, backbone)
            values |= {
                f"{c.key}_delta": combine(operator.sub, values[c.key], values["full"]) for c in KEPT
            }
            own = cells(values, paper, "selected_only", cohort, backbone)
            rows.append(Row((shown(backbone),), own, shown(cohort)))
    deltas = (Column(f"{c.key}_delta", f"Δ {c.head}", 3, "higher", signed=True) for c in KEPT)
    return Table(
        label="selected_only",
        title="Selected-only AUC of every backbone, and its difference to the full bag",
        heads=("Predictor",),
        columns=(FULL, *KEPT, *deltas, SHARE),
        rows=tuple(rows),
        notes=NOTES,
    )


def sweep_table(numbers: Numbers, paper: PublishedNumbers | None, counts: Sequence[int]) -> Table:
    """AUC with the first K tiles for several K; selectors trained with K = 32 and adaptive K."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            for name, place, ranking in _orders(cohort, backbone):
                values = {
                    f"k{k}": numbers.value(place, Measure("selected_auc", ranking, k=k))
                    for k in counts
                }
                if place.variant != "main" and values[f"k{counts[0]}"].n == 0:
                    continue
                own = cells(values, None, "selected_only", cohort, backbone)
                if paper is not None and place.variant == ADAPTIVE_RECIPE and 16 in counts:
                    printed = {"adaptive_k16": values["k16"]}
                    found = cells(printed, paper, "selected_only", cohort, backbone)
                    own["k16"] = found["adaptive_k16"]
                rows.append(Row((shown(backbone) + name,), own, shown(cohort)))
    return Table(
        label="selected_only_k",
        title="Selected-only AUC by the number of tiles kept",
        heads=("Method",),
        columns=tuple(Column(f"k{k}", f"K = {k}", 3, "higher") for k in counts),
        rows=tuple(rows),
        notes=("The paper gives K = 16 on BRCA in its text, with the adaptive selector.",),
    )


def selected_values(numbers: Numbers, cohort: str, backbone: str) -> dict[str, Value]:
    """AUC with all tiles, with 32 under three rankings, and of the adaptive selector."""
    place = Place(cohort, backbone)
    kept = {
        f"{ranking}_32": numbers.value(place, Measure("selected_auc", ranking, k=32))
        for ranking in (RANDOM, NATIVE, SELECTOR)
    }
    adaptive = Place(cohort, backbone, ADAPTIVE_RECIPE)
    return {
        "full": numbers.value(place, Measure("auc")),
        **kept,
        "adaptive": numbers.value(adaptive, Measure("selected_auc", SELECTOR)),
        "share_32": numbers.value(place, Measure("share_32")),
    }


def _orders(cohort: str, backbone: str) -> list[tuple[str, Place, str]]:
    main = Place(cohort, backbone)
    return [
        ("", main, NATIVE),
        (f" {WITH}", main, SELECTOR),
        (f" {WITH}, adaptive", Place(cohort, backbone, ADAPTIVE_RECIPE), SELECTOR),
        (" random order", main, RANDOM),
    ]
