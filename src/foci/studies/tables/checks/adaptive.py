"""tab:adaptive_k_settings: validation AUKC of selectors trained with an adaptive budget."""

from __future__ import annotations

from foci.studies.published import PublishedNumbers
from foci.studies.readings.measures import Place
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.tables.naming import shown
from foci.studies.tables.table import Cell, Column, Row, Table

LABEL = "adaptive_k_settings"
SEED42 = "val_aukc_seed42"
COLUMNS = (
    Column("val_aukc", "validation AUKC, to 256", 3, "higher"),
    Column("val_aukc_32", "to 32", 3, "higher"),
)


def adaptive_table(numbers: StudyNumbers, paper: PublishedNumbers | None) -> Table:
    """One row per cohort, share and smallest count; a single seed stands beside a single seed."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            for variant, (alpha, k_min) in sorted(
                numbers.adaptive.items(), key=lambda item: item[1]
            ):
                place = Place(cohort, backbone, variant)
                if place not in numbers.validation:
                    continue
                value = numbers.validation_score(place)
                column = "val_aukc" if len(numbers.validation[place]) > 1 else SEED42
                printed = None
                if paper is not None and k_min == 16 and backbone == "transmil":
                    printed = paper.get(LABEL, cohort, f"{alpha:g}", column)
                names = (shown(cohort), shown(backbone), f"{alpha:g}", str(k_min))
                short = numbers.over(numbers.short_validation.get(place, {}))
                cells = {"val_aukc": Cell(value, printed), "val_aukc_32": Cell(short, printed)}
                rows.append(Row(names, cells))
    return Table(
        label=LABEL,
        title="Adaptive budget max(K_min, alpha N) of the selector's training",
        heads=("Dataset", "Backbone", "alpha", "K_min"),
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(
            "Score of the epoch that was kept, on the validation slides. It is the area up to 256 "
            "tiles over a grid of counts, and the same up to 32. The paper does not say up to "
            "which count its own runs, so its number stands beside both.",
        ),
    )
