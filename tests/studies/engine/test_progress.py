"""What a run of a study says: one line per cell, with rate and time left."""

import re

import pytest

from foci.studies.engine.progress import StudyProgress, left_text
from foci.studies.engine.schedule import Tally
from foci.studies.engine.work import Outcome
from foci.studies.plan import Cell

CELL = Cell("train", "one", "abmil", 1, "main", 9, (), "k")


def test_rate_and_time_left() -> None:
    assert left_text(Tally(10, done=2), 2, rate=0.5) == "30.0 cells/min"
    assert left_text(Tally(10, done=2, left=1200.0), 2, 0.5) == "30.0 cells/min, 10 min left"


def test_one_line_per_cell_without_a_terminal() -> None:
    said: list[str] = []
    with StudyProgress(2, said.append, bar=False) as report:
        report(CELL, Outcome("k", 42.0), Tally(3, done=1, left=84.0))
        report(
            CELL, Outcome("k", 1.0, "it diverged"), Tally(3, done=1, failed={"k": "it diverged"})
        )
    pattern = r"\[1/3\] train/one/abmil/1: 42 s; [\d.]+ cells/min, 42 s left"
    assert re.fullmatch(pattern, said[0])
    assert said[1] == "[2/3] train/one/abmil/1: FAILED: it diverged"


def test_a_bar_on_a_terminal_and_failures_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    with StudyProgress(2, said.append, bar=True) as report:
        report(CELL, Outcome("k", 42.0), Tally(3, done=1))
        assert said == []
        report(
            CELL, Outcome("k", 1.0, "it diverged"), Tally(3, done=1, failed={"k": "it diverged"})
        )
    assert said == ["[2/3] train/one/abmil/1: FAILED: it diverged"]
