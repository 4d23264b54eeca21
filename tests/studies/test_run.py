"""One cell: written whole, never twice, resumed where it was stopped, its failure noted."""

import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from foci.files.lock import alone_in
from foci.studies import run as work
from foci.studies.plan import Cell, StudyFolder
from foci.studies.run import run_cell
from tests.makers.studies import make


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    return make(tmp_path, "one", seeds=[1])


@pytest.fixture
def cell(study: StudyFolder) -> Cell:
    return study.plan().select(kind="train", backbone="abmil")[0]


def test_a_finished_cell_is_recorded_and_left_alone(study: StudyFolder, cell: Cell) -> None:
    outcome = run_cell(study, cell, threads=2)
    assert outcome.error is None
    record = study.record(cell.key)
    assert record["cell"] == "train/one/abmil/1"
    assert (record["threads"], record["device"]) == (2, "cpu")
    assert record["seconds"] == pytest.approx(outcome.seconds, abs=1e-3)
    weights = study.path / "cells" / cell.key / "weights.safetensors"
    before = weights.stat().st_mtime_ns
    (study.path / "work" / cell.key / "result").mkdir(parents=True)  # of a process that was killed
    again = run_cell(study, cell)
    assert (again.error, again.seconds) == (None, 0.0)
    assert weights.stat().st_mtime_ns == before
    assert not (study.path / "work" / cell.key).exists()


def test_a_failure_is_noted_and_tried_again(
    study: StudyFolder, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("one\nof\nthose")

    with monkeypatch.context() as patch:
        patch.setattr(work, "compute", broken)
        assert run_cell(study, cell).error == "RuntimeError: one of those"
    assert study.failure(cell) == "RuntimeError: one of those"
    fit = study.plan().select(kind="fit", backbone="abmil")[0]
    assert study.failure(fit) is None
    assert study.blocked(fit) == "train/one/abmil/1"
    assert run_cell(study, cell).error is None
    assert study.failure(cell) is None
    assert study.blocked(fit) is None


def test_needs_come_first(study: StudyFolder) -> None:
    audit = study.plan().select(kind="audit", backbone="abmil")[0]
    outcome = run_cell(study, audit)
    assert outcome.error is not None
    assert "needs train/one/abmil/1, which is not finished" in outcome.error


def test_a_stopped_cell_is_resumed(
    study: StudyFolder, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = study.path / "work" / cell.key / "result" / "training.safetensors"
    from foci.backbones.training import loop

    saved = loop.save_run

    def stop_after_one(*args: Any) -> None:
        saved(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_run", stop_after_one)
        with pytest.raises(KeyboardInterrupt):
            run_cell(study, cell)
    assert state.is_file()
    epochs = []
    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_run", lambda *args: epochs.append(1) or saved(*args))
        assert run_cell(study, cell).error is None
    assert len(epochs) == 1  # the second of two
    stopped = _weights(study, cell)
    shutil.rmtree(study.path / "cells")
    assert run_cell(study, cell).error is None
    assert _weights(study, cell) == stopped


def test_another_version_starts_anew(study: StudyFolder, cell: Cell) -> None:
    work_folder = study.path / "work" / cell.key
    (work_folder / "result").mkdir(parents=True)
    (work_folder / "result" / "training.safetensors").write_bytes(b"of another time")
    (work_folder / "versions.json").write_text(json.dumps({"foci": "0"}))
    assert run_cell(study, cell).error is None


def test_two_processes_compute_a_cell_once(
    study: StudyFolder, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_folder = study.path / "work" / cell.key
    work_folder.mkdir(parents=True)
    looked, sleep, outcomes = threading.Event(), time.sleep, []
    monkeypatch.setattr(work.time, "sleep", lambda seconds: looked.set() or sleep(0.01))
    waiting = threading.Thread(target=lambda: outcomes.append(run_cell(study, cell)))
    with alone_in(work_folder):
        waiting.start()
        assert looked.wait(timeout=60)
        assert not outcomes
        (study.path / "cells" / cell.key).mkdir(parents=True)  # the other process has finished
    waiting.join(timeout=60)
    assert [(o.error, o.seconds) for o in outcomes] == [(None, 0.0)]


def test_a_study_that_is_edited_meanwhile(study: StudyFolder, cell: Cell) -> None:
    outcome = run_cell(make(study.path, "one", seeds=[1], n_cap=5), cell)
    assert outcome.error is not None
    assert "is not a cell of this plan: study.yaml or a cohort has changed" in outcome.error


def test_features_that_are_replaced_meanwhile(study: StudyFolder, cell: Cell) -> None:
    file = next((study.path / "one" / "features").glob("*.h5"))
    file.write_bytes(file.read_bytes() + b"x")
    outcome = run_cell(study, cell)
    assert outcome.error is not None
    assert "cohort one: has changed since the study was planned" in outcome.error


def _weights(study: StudyFolder, cell: Cell) -> bytes:
    return (study.path / "cells" / cell.key / "weights.safetensors").read_bytes()
