"""``foci study``: from a new file to finished cells, in one line per cell."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from foci.cli.terminal import say_study_page
from foci.studies.plan import StudyFolder
from foci.studies.study import read_study
from tests.cli.invoke import Foci
from tests.makers.studies import NARROW, make


def one(folder: Path) -> StudyFolder:
    """A study of one backbone and one seed."""
    return make(folder, "one", seeds=[1], backbones={"abmil": NARROW["abmil"]})


@pytest.mark.parametrize(("profile", "seeds"), [("paper", (42, 43, 44)), ("foci", (0, 1, 2))])
def test_a_new_study_can_be_read(
    foci: Foci, tmp_path: Path, profile: str, seeds: tuple[int, ...]
) -> None:
    foci.done("study", "new", tmp_path / "mine", "--profile", profile)
    study = read_study(tmp_path / "mine" / "study.yaml")
    assert (study.name, study.profile, study.seeds) == ("mine", profile, seeds)
    assert study.cohorts["mine"].features == (tmp_path / "mine" / "features").resolve()
    again = foci.refused("study", "new", tmp_path / "mine")
    assert again.endswith("study.yaml: exists; edit it, or choose another folder\n")


@pytest.mark.parametrize("profile", ["paper", "foci"])
def test_what_a_new_study_offers_in_comments_is_right(
    foci: Foci, tmp_path: Path, profile: str
) -> None:
    foci.done("study", "new", tmp_path / "mine", "--profile", profile)
    path = tmp_path / "mine" / "study.yaml"
    lines = path.read_text().splitlines()
    start = lines.index("cohorts:                  # one line each; the options of foci audit")
    offered = [re.sub(r"^( *)# ", r"\1", line) for line in lines[start:]]
    path.write_text("\n".join([*lines[:start], *offered]))
    study = read_study(path)
    assert list(study.backbones) == ["abmil", "clam-sb", "transmil", "mine"]
    assert study.efficiency is not None
    assert yaml.safe_load(path.read_text())["sweeps"].keys() == study.sweeps.keys()


def test_plan_run_status(foci: Foci, tmp_path: Path) -> None:
    one(tmp_path)
    planned = foci.done("study", "plan", tmp_path, "--cells")
    assert "train        1     0       0        0   unknown until the first" in planned.out
    assert "   0  to do    train/one/abmil/1  " in planned.out
    loaded = {name for name in sys.modules if name.split(".")[0] == "ray"}
    trained = foci.done("study", "run", tmp_path, "--only", "train")
    assert {name for name in sys.modules if name.split(".")[0] == "ray"} == loaded, "no Ray"
    assert trained.out.splitlines()[-1] == "1 of 1 cells done, 0 failed, 0 skipped"
    done = foci.done("study", "run", tmp_path)
    lines = done.out.splitlines()
    assert [line.split(": ")[0] for line in lines[:-1]] == [
        "[2/3] fit/one/abmil/1/main", "[3/3] audit/one/abmil/1/main",
    ]  # fmt: skip
    assert "cells/min" in lines[0]
    again = foci("study", "run", tmp_path)
    assert again.out == "3 of 3 cells done, 0 failed, 0 skipped\n"
    status = foci("study", "status", tmp_path)
    assert "total        3     3       0        0   -" in status.out


def test_a_failed_cell_is_listed_and_the_rest_is_whole(foci: Foci, tmp_path: Path) -> None:
    wild = {**NARROW, "transmil": {**NARROW["transmil"], "training": {"lr": 1e6, "clip": 0}}}
    study = make(tmp_path, "one", seeds=[1], backbones=wild)
    done = foci("study", "run", tmp_path)
    assert done.code == 3
    train, fit, audit = study.plan().select(backbone="transmil")
    assert "loss is" in str(study.failure(train))
    assert study.blocked(fit) == study.blocked(audit) == train.name
    assert all(study.result(cell) for cell in study.plan().select(backbone="abmil"))
    assert "3 of 6 cells done, 1 failed, 2 skipped" in done.out
    assert "train/one/transmil/1: FAILED: transmil" in done.out
    status = foci("study", "status", tmp_path)
    assert "train        2     1       1        0" in status.out
    assert "audit        2     1       0        1" in status.out
    assert "FAILED train/one/transmil/1: transmil" in status.out


def test_cells_by_number(foci: Foci, tmp_path: Path) -> None:
    study = one(tmp_path)
    job = foci("study", "slurm", tmp_path, "--at-once", "2", "--option=--partition=cpu")
    assert "#SBATCH --array=0-2%2\n" in job.out
    assert "#SBATCH --partition=cpu\n" in job.out
    digest = job.out.split("--plan ")[1].split()[0]
    done = foci.done("study", "cell", tmp_path, "--index", "2", "--plan", digest)
    assert done.out.startswith("audit/one/abmil/1/main: ")
    assert all(StudyFolder(study.path).result(cell) for cell in study.plan())
    none = foci("study", "slurm", tmp_path)
    assert "has no cell left to run; run foci study tables" in none.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "trian"], "--only trian: is no kind of cell; choose of train,fit,audit"),
        (["--gpus-per-cell", "1"], "--gpus-per-cell: needs Ray; give --address too"),
    ],
)
def test_bad_options(foci: Foci, tmp_path: Path, arguments: list[str], message: str) -> None:
    make(tmp_path, "one", seeds=[1])
    assert message in foci.refused("study", "run", tmp_path, *arguments)


def test_a_folder_without_a_study(foci: Foci, tmp_path: Path) -> None:
    done = foci("study", "run", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "has no study.yaml; make one with foci study new" in done.err


def test_the_page_of_a_study_is_a_link_with_a_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study, page = SimpleNamespace(path=tmp_path / "my study"), tmp_path / "study.html"
    found: dict[str, dict[str, Path]] = {}
    monkeypatch.setattr("foci.studies.read.audit_folders", lambda folder: found)
    say_study_page(study, page)  # type: ignore[arg-type]
    link = f"open {page.resolve().as_uri()}"
    assert capsys.readouterr().out.splitlines() == [link, f"next foci study run '{study.path}'"]
    found["place"] = {"0": tmp_path / "audit"}
    say_study_page(study, page)  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines() == [link, f"next foci view {tmp_path / 'audit'}"]
