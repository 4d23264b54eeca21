"""Columns of numbers in label tables: what is read, and what is refused in one line."""

from pathlib import Path

import numpy as np
import pytest

from foci import Cohort
from foci.bags.importers import Outcomes
from foci.errors import CohortError


def cohort(folder: Path, header: str, *rows: str, **columns) -> Cohort:
    (folder / "features").mkdir()
    for row in rows:
        np.save(folder / "features" / f"{row.split(',')[0]}.npy", np.ones((3, 4), np.float32))
    (folder / "labels.csv").write_text("\n".join([f"slide_id,case_id,{header}", *rows]) + "\n")
    outcomes = Outcomes.named(**columns)
    path = folder / "labels.csv"
    return Cohort.read(folder / "features", path, outcomes=outcomes, cache=False)


SURVIVAL = {"time": "days", "event": "died"}


def test_time_and_event(tmp_path: Path) -> None:
    read = cohort(tmp_path, "days,died", "a,p,30,1", "b,q,5.5,0", "c,r,,", **SURVIVAL)
    assert [slide.outcome for slide in read] == [(30.0, 1.0), (5.5, 0.0), ()]
    assert [slide.label for slide in read] == [None] * 3
    assert "no days and died for 1 slide (c)" in read.notes


def test_one_number_written_in_two_ways_is_one_number(tmp_path: Path) -> None:
    read = cohort(tmp_path, "score", "a,p,1", "b,q,1.0", "c,r,2", value="score")
    assert [slide.outcome for slide in read] == [(1.0,), (1.0,), (2.0,)]


def test_labels_follow_the_order_of_the_model(tmp_path: Path) -> None:
    read = cohort(tmp_path, "A,C", "a,p,0,1", "b,q,1,0", labels=("A", "C"))
    assert (read.classes, read["a"].outcome) == (("A", "C"), (0.0, 1.0))
    assert read.with_classes(("C", "A"))["a"].outcome == (1.0, 0.0)


@pytest.mark.parametrize(
    ("header", "rows", "columns", "message"),
    [
        ("days,died", ["a,p,0,1"], SURVIVAL, "slide a: has days 0, which is not positive; give"),
        ("days,died", ["a,p,-3,1"], SURVIVAL, "slide a: has days -3, which is not positive; g"),
        ("days,died", ["a,p,x,1"], SURVIVAL, "slide a: has days 'x', which is no number; write"),
        ("days,died", ["a,p,3,2"], SURVIVAL, "slide a: has died '2', which is neither 0 nor 1;"),
        ("days,died", ["a,p,3,0", "b,q,4,0"], SURVIVAL,
         "has no event in died: all of 2 slides are censored; write 1"),
        ("days,died", ["a,p,,"], SURVIVAL, "has no slide with days and died; fill"),
        ("score", ["a,p,2", "b,q,2.0"], {"value": "score"},
         "has the same score (2) on every slide; give"),
        ("A,C", ["a,p,0,1", "b,q,0,0"], {"labels": ("A", "C")}, "has A 0 on every slide; leave"),
        ("days", ["a,p,3"], {"time": "days"}, "--time days: says nothing without --event; give"),
    ],
)  # fmt: skip
def test_numbers_that_say_nothing_are_refused_in_one_line(
    header: str, rows: list[str], columns: dict, message: str, tmp_path: Path
) -> None:
    with pytest.raises(CohortError) as caught:
        cohort(tmp_path, header, *rows, **columns)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
