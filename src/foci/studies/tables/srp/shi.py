"""tab:shi: Selection Headroom Index per backbone and cohort, against native and against random."""

from __future__ import annotations

from foci.metrics import shi
from foci.studies.published import COHORTS, PublishedNumbers
from foci.studies.readings.measures import NATIVE, RANDOM, SELECTOR, Measure, Place
from foci.studies.readings.numbers import Numbers
from foci.studies.readings.values import Value, of_means
from foci.studies.tables.naming import shown
from foci.studies.tables.table import Cell, Column, Row, Table

LABEL, MEAN = "shi", "mean"
THREE = set(COHORTS)
"""The paper's mean is over these: it stands beside a mean of the same three only."""

NOTES = (
    "SHI is the relative saving of MSK_cond, (base - FOCI) / base, on means over seeds; the spread "
    "is that of SHI seed by seed. Near a base of one tile the ratio explodes: read it beside the "
    "counts.",
    "Against random, the base is the mean over random orders: a selector can beat a backbone's own "
    "ranking and lose to chance.",
)


def shi_of(numbers: Numbers, place: Place, base: str = NATIVE) -> Value:
    """SHI of the selector at a place, against another ranking, on means over seeds."""
    values = (numbers.value(place, Measure("msk_cond", name)) for name in (base, SELECTOR))
    return of_means(shi, *values)


def shi_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """One row per backbone, grouped by family; SHI of every cohort and their mean."""
    rows = []
    groups = list(dict.fromkeys(f.partition("/")[0] for f in numbers.backbones.values()))
    for backbone, family in sorted(
        numbers.backbones.items(), key=lambda item: groups.index(item[1].partition("/")[0])
    ):
        group, _, kind = family.partition("/")
        cells: dict[str, Cell] = {}
        for base, end in ((NATIVE, ""), (RANDOM, "_random")):
            each = {c: shi_of(numbers, Place(c, backbone), base) for c in numbers.cohorts}
            each[MEAN] = over_cohorts(each)
            for cohort, value in each.items():
                comparable = base == NATIVE and (cohort != MEAN or set(numbers.cohorts) == THREE)
                printed = (
                    paper.get(LABEL, cohort, backbone, LABEL) if paper and comparable else None
                )
                cells[f"{cohort}{end}"] = Cell(value, printed)
        rows.append(Row((kind, shown(backbone)), cells, group))
    names = (*numbers.cohorts, MEAN)
    return Table(
        label=LABEL,
        title="Selection Headroom Index per backbone and cohort",
        heads=("Family", "Backbone"),
        columns=(
            *(Column(name, shown(name), 3, "higher", signed=True) for name in names),
            *(
                Column(f"{name}_random", f"{shown(name)}, against random", 3, "higher", signed=True)
                for name in names
            ),
        ),
        rows=tuple(rows),
        notes=NOTES,
    )


def over_cohorts(each: dict[str, Value]) -> Value:
    """Mean of a value over cohorts; absent where a cohort has none."""
    absent = [name for name, value in each.items() if value.mean is None]
    if absent:
        return Value.absent(f"no value on {', '.join(map(shown, absent))}")
    means = [value.mean for value in each.values() if value.mean is not None]
    return Value(sum(means) / len(means), None, min(value.n for value in each.values()))
