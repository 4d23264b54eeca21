"""Is the classifier unchanged? Full-bag answers of every audit of a model, and its weights."""

from __future__ import annotations

import numpy as np

from foci.studies.readings.audit import AuditReading
from foci.studies.readings.measures import Measure, Place
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.readings.values import Value
from foci.studies.tables.naming import shown
from foci.studies.tables.table import Cell, Column, Row, Table

COLUMNS = (
    Column("trained_auc", "AUC when trained", 4),
    Column("auc", "AUC with a selector", 4),
    Column("difference", "difference", 4, signed=True),
    Column("audits", "audits of the same weights", 0),
    Column("largest", "largest difference of p between them", 9),
)


def preservation_table(numbers: StudyNumbers) -> Table:
    """Full-bag AUC before and after a selector was fitted, and answers across all variants."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            place = Place(cohort, backbone)
            trained = numbers.over(numbers.trained.get(place, {}))
            if not numbers.trained.get(place):
                trained = Value.absent("no AUC was noted when it was trained")
            now = numbers.value(place, Measure("auc"))
            shared = [seed for seed in now.seeds if seed in trained.seeds]
            lost = {seed: now.seeds[seed] - trained.seeds[seed] for seed in shared}
            same, largest = _answers(numbers, place)
            known = numbers.over(lost) if lost else Value.absent("one of them is missing")
            cells = {
                "trained_auc": Cell(trained),
                "auc": Cell(now),
                "difference": Cell(known),
                "audits": Cell(Value(float(same), n=same)),
                "largest": Cell(largest),
            }
            rows.append(Row((shown(backbone),), cells, shown(cohort)))
    return Table(
        label="preservation",
        title="The classifier is unchanged: full-bag answers before and after fitting a selector",
        heads=("Backbone",),
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(
            "The main audit and those of the variants hold the same full-bag answers of the same "
            "weights; the last column is the largest difference of a probability between them. "
            "An audit whose classifier has other weights would be named here.",
        ),
    )


def _answers(numbers: StudyNumbers, place: Place) -> tuple[int, Value]:
    """Number of audits of the models of a place, and the largest difference between answers."""
    largest: dict[str, float] = {}
    gaps: dict[str | None, str] = {}
    count = 0
    for seed, main in numbers.read(place).items():
        others = [main, *_variants(numbers, place, seed)]
        count += len(others)
        foreign = [one for one in others if one.facts.fingerprint != main.facts.fingerprint]
        if foreign:
            gaps[seed] = f"{len(foreign)} audits are of other weights"
            continue
        largest[seed] = max(float(np.abs(one.facts.full - main.facts.full).max()) for one in others)
    return count, Value.over(largest, gaps) if largest or gaps else Value.absent("no audit")


def _variants(numbers: StudyNumbers, place: Place, seed: str) -> list[AuditReading]:
    """Audits of the same model and the same tiles with other selectors."""
    found = []
    for other in numbers.audits:
        same = (other.cohort, other.backbone, other.n_cap) == (place.cohort, place.backbone, None)
        if same and other != place and seed in numbers.read(other):
            found.append(numbers.read(other)[seed])
    return found
