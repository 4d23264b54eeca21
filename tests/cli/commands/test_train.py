"""``foci train`` from files to a folder."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci import Cohort, backbones
from foci.audits.numbers import split_scores
from foci.backbones.training import Predictions
from tests.cli.invoke import Foci
from tests.makers.cohorts import toy_cohort

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
        "foci.log",
        "weights.safetensors",
    ]
    assert backbones.load(folder / "m").architecture == "abmil"
    other = foci(*command(folder, "abmil", "m", *QUICK, "--seed", "1"))
    assert other.code == 2
    assert "m: already holds a backbone trained with other options, slides or feature" in other.err


def test_the_preset_is_said_and_stored(foci: Foci, folder: Path) -> None:
    small = ["--epochs", "1", "--set", "d=16", "--set", "hidden=8"]

    def recipe(name: str, out: str, *more: str) -> tuple[str, dict[str, Any]]:
        done = foci(*command(folder, name, out, *more))
        assert done.code == 0, done.err
        (line,) = [line for line in done.out.splitlines() if line.startswith("training preset")]
        return line, json.loads((folder / out / "backbone.json").read_text())["recipe"]

    line, stored = recipe("clam-sb", "subtypes", *small)
    assert line == (
        "training preset of clam-sb: objective.subtyping=True (the classes are taken for "
        "subtypes, which exclude each other)"
    )
    assert stored["objective"] == {"subtyping": True}
    _, stored = recipe("clam-sb", "other", *small, "--objective", "subtyping=false")
    assert stored["objective"] == {"subtyping": False}
    narrow = ["--epochs", "1", "--set", "d=8", "--set", "scorer_hidden=4"]
    line, stored = recipe("attrimil", "attrimil", *narrow)
    assert line.startswith("training preset of attrimil: lr=0.001 (at 2e-4 the ranking")
    assert (stored["lr"], stored["epochs"], stored["weight_decay"]) == (1e-3, 1, 1e-5)
    _, stored = recipe("attrimil", "slow", *narrow, "--lr", "2e-4")
    assert stored["lr"] == 2e-4


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
        (["abmil", "--set", "d=[1"], "--set d=[1: has a value that cannot be read"),
        (["abmil", "--device", "cuda:7"], "--device cuda:7: cannot be used"),
        (["abmil", "--objective", "subtyping=true"], "subtyping"),
        (["abmil", "--schedule", "wavy"], "schedule"),
        (["abmil", "--seed", "-1"], "seed: cannot be -1; Input should be greater than or equal"),
        (["abmil", "--set", "d=-3"], "d: cannot be -3; Input should be greater than 0"),
        (["transmil", "--set", "heads=0"], "heads: cannot be 0; Input should be greater than 0"),
        (["abmil", "--set", "dropout=3"], "dropout: cannot be 3; Input should be less than 1"),
        (["abmil", "--set", "n_classes=3"], "n_classes: is not a setting of abmil (paper)"),
        (
            ["clam-sb", "--objective", "subtyping=maybe"],
            "subtyping: cannot be 'maybe'; Input should be a valid boolean",
        ),
        (
            ["attrimil", "--lr", "1e3", "--set", "d=8", "--set", "scorer_hidden=4"],
            "attrimil, train epoch 1: the training loss is nan; lower --lr (it is 1000)",
        ),
    ],
)
def test_mistakes_are_one_line(foci: Foci, folder: Path, arguments: list[str], says: str) -> None:
    name, *more = arguments
    done = foci(*command(folder, name, "m", *more))
    assert done.code == 2
    assert says in done.err
    assert len(done.err.splitlines()) == 1
    assert not (folder / "m" / "backbone.json").exists()


def test_a_cohort_without_splits_is_split_by_patient(foci: Foci, folder: Path) -> None:
    table = folder / "labels.csv"
    rows = [line.rsplit(",", 1)[0] for line in table.read_text().splitlines()]
    table.write_text("\n".join(rows) + "\n")
    done = foci(*command(folder, "abmil", "m", *QUICK))
    assert done.code == 0, done.err
    facts = json.loads((folder / "m" / "backbone.json").read_text())
    assert sum(facts["slides"].values()) == 24


def test_slides_without_label_or_split_are_said(foci: Foci, folder: Path) -> None:
    table = folder / "labels.csv"
    lines = table.read_text().splitlines()
    lines[1] = "s00,c0,,train"
    lines[2:4] = ["s01,c1,b,", "s02,c2,a,"]
    table.write_text("\n".join(lines) + "\n")
    done = foci(*command(folder, "abmil", "m", *QUICK))
    assert done.code == 0, done.err
    assert "note: no label for 1 slide (s00)\n" in done.out
    assert "note: left out: 1 slide without a label\n" in done.out
    assert "note: left out: 2 slides in no split\n" in done.out
    facts = json.loads((folder / "m" / "backbone.json").read_text())
    assert facts["slides"] == {"train": 9, "val": 6, "test": 6}
    assert facts["trained_on"] == [f"s{i:02d}" for i in range(3, 12)]
    assert "left out: 2 slides in no split" in facts["notes"]


def test_unlabelled_slides_are_left_out_after_the_split(foci: Foci, folder: Path) -> None:
    table = folder / "labels.csv"
    rows = [line.rsplit(",", 1)[0] for line in table.read_text().splitlines()]
    rows[1:7] = [row.rsplit(",", 1)[0] + "," for row in rows[1:7]]
    table.write_text("\n".join(rows) + "\n")
    done = foci(*command(folder, "abmil", "m", *QUICK))
    assert done.code == 0, done.err
    divided = Cohort.read(folder / "features", table, cache=False).with_splits(seed=0)
    expected = [s.slide_id for s in divided.split("train") if s.label is not None]
    facts = json.loads((folder / "m" / "backbone.json").read_text())
    assert facts["trained_on"] == expected


def test_validation_is_taken_from_train_where_it_is_missing(foci: Foci, folder: Path) -> None:
    table = folder / "labels.csv"
    table.write_text(table.read_text().replace(",val", ",train"))
    done = foci(*command(folder, "abmil", "m", *QUICK))
    assert done.code == 0, done.err
    assert "note: no 'val' split:" in done.out


def test_a_split_that_lacks_a_class_has_no_auc_and_says_so(foci: Foci, tmp_path: Path) -> None:
    toy_cohort(tmp_path, classes="abc")
    table = tmp_path / "labels.csv"
    rows = table.read_text().splitlines()
    table.write_text("\n".join(r for r in rows if not r.endswith((",c,val", ",c,test"))) + "\n")
    done = foci(*command(tmp_path, "abmil", "m", *QUICK))
    assert done.code == 0, done.err
    for split in ("val", "test"):
        said = f"note: no {split} slide is of class c: AUC is undefined there"
        assert done.out.splitlines().count(said) == 1
        assert f"\n{split}: auc -, accuracy " in done.out
    assert done.out.index("note: no val") < done.out.index("train 1/3")
    assert "no train slide" not in done.out
    facts = json.loads((tmp_path / "m" / "backbone.json").read_text())
    assert facts["metrics"]["val"]["auc"] is None
    assert facts["metrics"]["test"]["auc"] is None
    assert 0 <= facts["metrics"]["train"]["auc"] <= 1
    assert facts["metrics"]["val"]["loss"] > 0
    assert facts["notes"][-1] == "no test slide is of class c: AUC is undefined there"
    assert backbones.load(tmp_path / "m").n_classes == 3


def test_auc_by_hand() -> None:
    labels = np.array([0, 0, 1, 1])
    second = np.array([0.1, 0.4, 0.35, 0.8])
    seen = Predictions(tuple("abcd"), np.stack([1 - second, second], axis=1), labels)
    assert split_scores(seen)["auc"] == 0.75
    assert split_scores(replace(seen, labels=np.zeros(4, np.int64)))["auc"] is None
