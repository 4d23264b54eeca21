"""The order of cells: needs first, the longest way first, cost alone; failures stop little.

And what a run says: one line per cell, with rate and time left.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from foci.engines.base import Outcome
from foci.studies.plan import Cell, StudyFolder
from foci.studies.run import Estimates, StudyProgress, Tally, left_text, run_plan
from tests.engines.test_base import Pretending
from tests.makers.studies import make


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    return make(tmp_path, efficiency={})


def run(study: StudyFolder, engine: Pretending, **options: Any) -> tuple[Tally, list[str]]:
    """How the run went, and the names of its cells in the order in which they were started."""
    plan = study.plan()
    return run_plan(study, plan, engine, **options), [plan[key].name for key in engine.started]


def test_needs_first_and_never_more_than_the_slots(study: StudyFolder) -> None:
    engine, plan = Pretending(3), study.plan()
    tally, started = run(study, engine)
    assert tally.done == tally.total == len(plan)
    assert sorted(started) == sorted(cell.name for cell in plan)
    assert max(map(len, engine.together)) == 3
    for cell in plan:
        assert all(started.index(need.name) < started.index(cell.name) for need in plan.needs(cell))


def test_cost_is_measured_alone_and_last(study: StudyFolder) -> None:
    engine = Pretending(3, ahead=3)
    _, started = run(study, engine)
    assert [name[:4] for name in started[-2:]] == ["cost", "cost"]
    assert max(map(len, engine.together)) == 6
    cost = {cell.key for cell in study.plan().select(kind="cost")}
    assert all(len(tasks) == 1 for tasks in engine.together if cost & {one.key for one in tasks})


def test_a_failure_stops_only_what_needs_it(study: StudyFolder) -> None:
    plan = study.plan()
    (failing,) = plan.select(kind="train", cohort="one", backbone="abmil", seed=1)
    tally, _ = run(study, Pretending(2, failing=frozenset([failing.key])))
    assert [*tally.failed] == [failing.key]
    assert {plan[key].name for key in tally.skipped} == {
        "fit/one/abmil/1/main", "audit/one/abmil/1/main", "cost/one/abmil/1",
    }  # fmt: skip
    assert tally.done == len(plan) - 4
    assert tally.ended == tally.total


def test_only_some_kinds(study: StudyFolder) -> None:
    tally, _ = run(study, Pretending(2), only=("train",))
    assert (tally.done, tally.total) == (8, 8)
    audits, _ = run(study, Pretending(2), only=("audit",))
    assert (audits.done, len(audits.skipped)) == (0, 8)


def test_the_longest_way_first(study: StudyFolder) -> None:
    plan = study.plan()
    study.write_record(plan.select(kind="audit", backbone="transmil", seed=1)[0], seconds=100.0)
    study.write_record(plan.select(kind="audit", backbone="abmil", seed=1)[0], seconds=3.0)
    _, started = run(study, Pretending(1))
    assert all("transmil" in name for name in started[:4])


def test_estimates_come_from_cells_that_are_alike(study: StudyFolder) -> None:
    plan = study.plan()
    estimates = Estimates(study, plan)
    audits = plan.select(kind="audit", backbone="abmil")
    assert estimates.of(audits[0]) is None
    assert estimates.total(audits) is None
    estimates.add(plan.select(kind="audit", backbone="transmil", cohort="one")[0], 8.0)
    assert estimates.of(audits[0]) == 8.0  # any audit
    estimates.add(plan.select(kind="audit", backbone="abmil", cohort="two")[0], 2.0)
    estimates.add(plan.select(kind="audit", backbone="abmil", cohort="one")[0], 4.0)
    assert [estimates.of(cell) for cell in audits] == [4.0, 4.0, 2.0, 2.0]
    assert estimates.total(audits) == 12.0


CELL = Cell("train", "one", "abmil", 1, "main", 9, (), "k")
FAILED = Outcome("k", 1.0, "it diverged"), Tally(3, done=1, failed={"k": "it diverged"})


def test_rate_and_time_left() -> None:
    assert left_text(Tally(10, done=2), 2, rate=0.5) == "30.0 cells/min"
    assert left_text(Tally(10, done=2, left=1200.0), 2, 0.5) == "30.0 cells/min, 10 min left"


def test_one_line_per_cell_without_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    with StudyProgress(2, bar=False) as report:
        report(CELL, Outcome("k", 42.0), Tally(3, done=1, left=84.0))
        report(CELL, *FAILED)
    pattern = r"\[1/3\] train/one/abmil/1: 42 s; [\d.]+ cells/min, 42 s left"
    assert re.fullmatch(pattern, caplog.messages[0])
    assert caplog.messages[1] == "[2/3] train/one/abmil/1: FAILED: it diverged"


def test_a_bar_on_a_terminal_and_failures_in_lines(caplog: pytest.LogCaptureFixture) -> None:
    with StudyProgress(2, bar=True) as report:
        report(CELL, Outcome("k", 42.0), Tally(3, done=1))
        assert caplog.messages == []
        report(CELL, *FAILED)
    assert caplog.messages == ["[2/3] train/one/abmil/1: FAILED: it diverged"]
