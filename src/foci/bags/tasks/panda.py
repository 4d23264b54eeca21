"""Prostate biopsies of PANDA: benign (ISUP grade 0) against malignant (1 to 5)."""

from __future__ import annotations

from foci.bags.cohort.slide import Slide
from foci.bags.importers.rows import filled, unique
from foci.bags.tables import Table, read_table
from foci.bags.tasks.task import BuiltCohort, Source, Task
from foci.errors import CohortError

_GRADES = ("0", "1", "2", "3", "4", "5")
NOTE = (
    "PANDA names no patients: every slide counts as its own patient, and whether a patient is in "
    "two splits cannot be checked"
)


def read(source: Source) -> BuiltCohort:
    """``train.csv``, or the folder that holds it."""
    if source.label is not None:
        what = f"cannot all be {source.label}: PANDA's grades are in train.csv"
        raise CohortError(source.path, what, "give train.csv without a label")
    path = source.path / "train.csv" if source.path.is_dir() else source.path
    if not path.is_file():
        raise CohortError(source.path, "holds no train.csv", "give PANDA's train.csv")
    table = read_table(path)
    table.require("image_id", "data_provider", "isup_grade", fix="give PANDA's train.csv")
    names = unique(table, filled(table, "image_id"))
    sites = filled(table, "data_provider")
    return BuiltCohort(
        tuple(
            Slide(name, name, _label(table, index), site=sites[index])
            for index, name in enumerate(names)
        ),
        (NOTE,),
    )


def _label(table: Table, index: int) -> str:
    grade = table.rows[index]["isup_grade"]
    if grade not in _GRADES:
        what = f"isup_grade is {grade!r}, not 0 to 5"
        raise CohortError(table.line(index), what, "correct it or delete the row")
    return "benign" if grade == "0" else "malignant"


TASK = Task(
    "PANDA prostate, benign against malignant",
    classes=("benign", "malignant"),
    counts=(6793, 1699, 2123),
    stratify_by=("label", "site"),
    read=read,
)
