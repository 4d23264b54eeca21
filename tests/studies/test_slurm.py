"""A SLURM array: its script, and the real thing where SLURM is running."""

import shutil
import subprocess
from pathlib import Path

import pytest

from foci.engines.slurm import array
from foci.errors import FociError
from foci.studies.plan import StudyFolder
from foci.studies.run import array_job, cell_at, run_with_needs
from tests.engines.odd_work import waited_for
from tests.makers.studies import make
from tests.studies import lost


def _why_not() -> str | None:
    """Why no job can be given to SLURM here; None if one can."""
    if shutil.which("sbatch") is None:
        return "SLURM is not installed"
    said = subprocess.run(["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True)
    if said.returncode:
        return "SLURM is installed but not running (start munged, slurmctld and slurmd)"
    return None if said.stdout.strip() else "SLURM has no node"


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    return make(tmp_path, "one", seeds=[1])


def test_indices_as_slurm_writes_them() -> None:
    assert array([4]) == "4"
    assert array([9, 3, 4, 5, 0]) == "0,3-5,9"


def test_the_script_names_what_is_left(study: StudyFolder) -> None:
    plan = study.plan()
    text = array_job(study, plan, threads=2, gpus=1, at_once=4, options=["--partition=gpu"])
    assert text.startswith("#!/bin/bash\n#SBATCH --job-name=foci-tiny\n#SBATCH --array=0-5%4\n")
    for line in ("#SBATCH --cpus-per-task=2", "#SBATCH --gres=gpu:1", "#SBATCH --partition=gpu",
                 "export OMP_NUM_THREADS=2 MKL_NUM_THREADS=2"):  # fmt: skip
        assert f"\n{line}\n" in text
    assert f"#SBATCH --output={study.path}/logs/slurm-%A_%a.log" in text
    assert (study.path / "logs").is_dir()
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0
    for index in (0, 1, 3):
        (study.path / "cells" / plan.cells[index].key).mkdir(parents=True)
    assert "#SBATCH --array=2,4-5\n" in array_job(study, plan)
    for cell in plan:
        (study.path / "cells" / cell.key).mkdir(exist_ok=True)
    with pytest.raises(FociError, match="has no cell left to run"):
        array_job(study, plan)


def test_an_index_belongs_to_one_plan(study: StudyFolder) -> None:
    plan = study.plan()
    assert cell_at(plan, 2, plan.digest[:12]) == plan.cells[2]
    with pytest.raises(FociError, match=r"--plan abc: was made for another plan"):
        cell_at(plan, 2, "abc")
    with pytest.raises(FociError, match=r"--index 6: is not between 0 and 5"):
        cell_at(plan, 6, None)


def test_a_cell_computes_what_it_needs(study: StudyFolder) -> None:
    plan = study.plan()
    (audit,) = plan.select(kind="audit", backbone="abmil")
    assert run_with_needs(study, plan, audit).error is None
    assert [cell.name for cell in plan if study.result(cell)] == [
        "train/one/abmil/1", "fit/one/abmil/1/main", "audit/one/abmil/1/main",
    ]  # fmt: skip


def test_a_cell_whose_need_fails(tmp_path: Path) -> None:
    wild = {"abmil": {"training": {"lr": 1e6, "clip": 0}, "widths": {"d": 16, "hidden": 8}}}
    study = make(tmp_path, "one", seeds=[1], backbones=wild)
    plan = study.plan()
    outcome = run_with_needs(study, plan, plan.cells[-1])
    assert outcome.error is not None
    assert outcome.error.startswith("skipped: train/one/abmil/1 failed (")


@pytest.mark.skipif(_why_not() is not None, reason=_why_not() or "")
def test_a_real_array_is_cancelled_and_given_again(tmp_path: Path) -> None:
    reference = lost.finished_here(tmp_path / "reference", "abmil")
    study = lost.copied(reference, tmp_path / "study")
    job = _submit(study)
    lost.training_state(study, seconds=300)
    subprocess.run(["scancel", job], check=True)
    _wait(job)
    done = [cell for cell in study.plan() if study.result(cell)]
    assert len(done) < len(study.plan())
    _wait(_submit(study))
    lost.check_equal(study, reference)


def _submit(study: StudyFolder) -> str:
    path = study.path / "job.sbatch"
    path.write_text(array_job(study, study.new_plan()))
    said = subprocess.run(
        ["sbatch", "--parsable", str(path)], capture_output=True, text=True, check=True
    )
    return said.stdout.strip()


def _wait(job: str) -> None:
    def gone() -> bool:
        listed = ["squeue", "--noheader", "--jobs", job]
        said = subprocess.run(listed, capture_output=True, text=True)
        return said.returncode != 0 or not said.stdout.strip()

    waited_for(gone, seconds=900, every=1.0)
