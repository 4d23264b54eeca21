"""A study on disk: the plan survives its features, results and failures are found by key."""

from pathlib import Path

import pytest

from foci.errors import FociError
from foci.studies.folder import CELLS, StudyFolder
from tests.makers.studies import make


def test_results_and_failures_are_found_by_key(tmp_path: Path) -> None:
    study = make(tmp_path)
    cell = study.plan().select(kind="audit")[0]
    assert study.result(cell) is None
    assert study.failure(cell) is None
    study.write_record(cell, error="it diverged; lower the rate")
    assert study.failure(cell) == "it diverged; lower the rate"
    (tmp_path / CELLS / cell.key).mkdir(parents=True)
    assert study.result(cell) == tmp_path / CELLS / cell.key
    assert study.failure(cell) is None
    study.write_record(cell, seconds=3.5)
    assert study.seconds(cell) == 3.5


def test_the_plan_is_read_where_the_features_are_gone(tmp_path: Path) -> None:
    study = make(tmp_path)
    plan = study.plan()
    (tmp_path / "one" / "labels.csv").unlink()
    assert StudyFolder(tmp_path / "study.yaml").plan() == plan
    with pytest.raises(FociError):
        study.new_plan()


def test_another_study_is_planned_anew(tmp_path: Path) -> None:
    before = make(tmp_path).plan()
    after = make(tmp_path, seeds=[7]).plan()
    assert {cell.seed for cell in after} == {7}
    assert len(after) == len(before) // 2


def test_a_folder_without_a_study(tmp_path: Path) -> None:
    with pytest.raises(FociError, match=r"has no study.yaml; make one with foci study new"):
        StudyFolder(tmp_path)
