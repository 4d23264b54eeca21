"""``foci train`` from files to a folder."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from foci import backbones
from tests.backbones.training.toy_cohort import toy_cohort
from tests.cli.invoke import Foci

QUICK = ["--epochs", "3", "--lr", "0.003", "--set", "d=16", "--set", "hidden=8"]


def command(folder: Path, name: str, out: str, *more: str) -> list[str]:
    return [
        "train", name, "--features", str(folder / "features"),
        "--labels", str(folder / "labels.csv"), "--out", str(folder / out), *more,
    ]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    toy_cohort(tmp_path)
    return tmp_path


def test_trains_scores_and_writes(foci: Foci, folder: Path) -> None:
    (folder / "features" / "s05.h5").write_bytes(b"cut")
    done = foci(*command(folder, "abmil", "m", *QUICK))
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert "skipped s05: " in lines[0]
    assert "train 1/3  loss " in done.out
    assert "test: auc " in done.out
    facts = json.loads((folder / "m" / "backbone.json").read_text())
    assert facts["classes"] == ["a", "b"]
    assert facts["config"]["d"] == 16
    assert set(facts["metrics"]) == {"train", "val", "test"}
    assert facts["slides"] == {"train": 11, "val": 6, "test": 6}
    assert sorted(p.name for p in (folder / "m").iterdir()) == [
        "backbone.json",
        "weights.safetensors",
    ]
    assert backbones.load(folder / "m").architecture == "abmil"
    again = foci(*command(folder, "abmil", "m", *QUICK))
    assert again.code == 2
    assert "already holds a trained backbone" in again.err


def test_killed_and_started_again_gives_the_same_bytes(foci: Foci, folder: Path) -> None:
    more = ["--epochs", "40", "--set", "d=16", "--set", "hidden=8"]
    whole = foci(*command(folder, "abmil", "whole", *more))
    assert whole.code == 0, whole.err
    process = subprocess.Popen(
        [sys.executable, "-m", "foci", *command(folder, "abmil", "killed", *more)],
        stdout=subprocess.DEVNULL,
    )
    state = folder / "killed" / "training.safetensors"
    while process.poll() is None and not state.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = foci(*command(folder, "abmil", "killed", *more))
    assert done.code == 0, done.err
    for name in ("weights.safetensors", "backbone.json"):
        assert (folder / "killed" / name).read_bytes() == (folder / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["abmi"], "abmi: is not a known backbone; did you mean 'abmil'?"),
        (["abmil", "--preset", "fancy"], "abmil: has no preset 'fancy'"),
        (["abmil", "--set", "widht=3"], "widht"),
        (["abmil", "--set", "d"], "--set d: is not of the form key=value"),
        (["abmil", "--device", "cuda:7"], "--device cuda:7: cannot be used"),
        (["abmil", "--objective", "subtyping=true"], "subtyping"),
        (["abmil", "--schedule", "wavy"], "schedule"),
    ],
)
def test_mistakes_are_one_line(foci: Foci, folder: Path, arguments: list[str], says: str) -> None:
    name, *more = arguments
    done = foci(*command(folder, name, "m", *more))
    assert done.code == 2
    assert says in done.err
    assert "Traceback" not in done.err
    assert not (folder / "m" / "backbone.json").exists()


def test_a_cohort_without_splits_is_split_by_patient(foci: Foci, folder: Path) -> None:
    table = folder / "labels.csv"
    rows = [line.rsplit(",", 1)[0] for line in table.read_text().splitlines()]
    table.write_text("\n".join(rows) + "\n")
    done = foci(*command(folder, "abmil", "m", *QUICK))
    assert done.code == 0, done.err
    facts = json.loads((folder / "m" / "backbone.json").read_text())
    assert sum(facts["slides"].values()) == 24


def test_validation_is_taken_from_train_where_it_is_missing(foci: Foci, folder: Path) -> None:
    table = folder / "labels.csv"
    table.write_text(table.read_text().replace(",val", ",train"))
    done = foci(*command(folder, "abmil", "m", *QUICK))
    assert done.code == 0, done.err
    assert "note: no 'val' split:" in done.out
