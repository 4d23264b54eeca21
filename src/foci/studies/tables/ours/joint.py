"""Control: AUC on the validation slides when classifier and selector are trained together."""

from __future__ import annotations

from foci.studies.readings.numbers import StudyNumbers
from foci.studies.readings.values import Value
from foci.studies.tables.naming import shown
from foci.studies.tables.table import Cell, Column, Row, Table


def joint_table(numbers: StudyNumbers) -> Table:
    """AUC before, after every epoch, and the loss at the end in points."""
    longest = max(
        (len(run) for runs in numbers.joint.values() for run in runs.values() if run), default=1
    )
    epochs = range(1, longest)
    rows = []
    for place, runs in numbers.joint.items():
        after: dict[str, Value] = {}
        for epoch in range(longest):
            readings = {s: run if isinstance(run, str) else run[epoch] for s, run in runs.items()}
            after["before" if epoch == 0 else f"epoch_{epoch}"] = numbers.over(readings)
        lost = {
            seed: run if isinstance(run, str) else 100 * (run[0] - run[-1])
            for seed, run in runs.items()
        }
        cells = {name: Cell(value) for name, value in after.items()}
        cells["points"] = Cell(numbers.over(lost))
        rows.append(Row((shown(place.cohort), shown(place.backbone)), cells))
    return Table(
        label="joint",
        title="Joint training of classifier and selector: validation AUC by epoch",
        heads=("Dataset", "Backbone"),
        columns=(
            Column("before", "frozen", 3),
            *(Column(f"epoch_{epoch}", f"after epoch {epoch}", 3) for epoch in epochs),
            Column("points", "loss in points", 1),
        ),
        rows=tuple(rows),
        notes=(
            "The paper reports a pilot run on NSCLC with TransMIL that lost more than 15 points of "
            "validation AUC within two epochs.",
        ),
    )
