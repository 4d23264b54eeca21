"""Cells that are missing, failed, blocked or damaged are gaps that say so."""

import shutil
from pathlib import Path

from foci.studies.folder import CELLS, StudyFolder
from foci.studies.read import Measure, Place, read_numbers
from tests.makers.studies import make

MSK = Measure("msk_cond", "native")


def gap(study: StudyFolder, place: Place, measure: Measure = MSK) -> str | None:
    return read_numbers(study).value(place, measure).gap


def test_nothing_was_run(tmp_path: Path) -> None:
    study = make(tmp_path, "one")
    assert gap(study, Place("one", "abmil")) == "seeds 1, 2: not run yet"
    assert gap(study, Place("one", "abmil", "paper-soft")) == "not part of this study"


def test_failed_and_blocked(tmp_path: Path) -> None:
    study = make(tmp_path, "one")
    plan = study.plan()
    (train,) = plan.select(kind="train", backbone="abmil", seed=1)
    study.write_record(train, error="it diverged; lower the rate")
    (audit,) = plan.select(kind="audit", backbone="abmil", seed=2, variant="main")
    study.write_record(audit, error="a slide is torn")
    assert gap(study, Place("one", "abmil")) == (
        "seed 1: train failed: it diverged; lower the rate; seed 2: audit failed: a slide is torn"
    )


def test_damaged(study: Path, tmp_path: Path) -> None:
    shutil.copytree(study, tmp_path / "copy")
    folder = StudyFolder(tmp_path / "copy")
    (audit,) = folder.plan().select(
        kind="audit", cohort="brca", backbone="abmil", seed=42, variant="main"
    )
    path = folder.path / CELLS / audit.key / "manifest.json"
    path.write_text("{}")
    said = gap(folder, Place("brca", "abmil"))
    assert said is not None
    assert said.startswith("seed 42: cannot be read: ")
    assert "manifest.json" in said


def test_a_ranking_that_was_not_run(study: Path) -> None:
    folder, place = StudyFolder(study), Place("brca", "abmil")
    numbers = read_numbers(folder)
    for measure, reason in (
        (Measure("msk_cond", "evidence"), "the ranking evidence was not run"),
        (Measure("aukc", "native", k_max=512), "the audit ends at 256 tiles"),
        (Measure("msk_cond", "native", kappa=0.42), "not measured"),
    ):
        assert numbers.value(place, measure).gap == f"seeds 42, 43: {reason}"
