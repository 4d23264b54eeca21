"""``foci train``: from files to a folder, and what it says on the way."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci import Cohort, backbones
from foci.audits.numbers import split_scores
from foci.backbones.training import EpochReport, Predictions, loop
from foci.cli.commands.train import EpochLines
from foci.files.run_log import LOG
from tests.cli.invoke import Foci
from tests.makers.cohorts import toy_cohort

QUICK = ["--epochs", "3", "--lr", "0.003", "--set", "d=16", "--set", "hidden=8"]


def command(folder: Path, name: str, out: str, *more: str) -> list[str]:
    return [
        "train", name, "--features", str(folder / "features"),
        "--labels", str(folder / "labels.csv"), "--out", str(folder / out), *more,
    ]  # fmt: skip


def record(out: Path) -> dict[str, Any]:
    """What the folder of a trained backbone says of it."""
    return dict(json.loads((out / "backbone.json").read_text()))


def without_splits(table: Path) -> list[str]:
    """Remove the last column; the rows that are left."""
    rows = [line.rsplit(",", 1)[0] for line in table.read_text().splitlines()]
    table.write_text("\n".join(rows) + "\n")
    return rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    toy_cohort(tmp_path)
    return tmp_path


def test_trains_scores_and_writes(foci: Foci, folder: Path) -> None:
    (folder / "features" / "s05.h5").write_bytes(b"cut")
    done = foci.done(*command(folder, "abmil", "m", *QUICK))
    lines = done.out.splitlines()
    assert "1,024 tiles are read" in lines[0]
    assert "skipped s05: " in lines[1]
    assert "train 1/3  loss " in done.out
    assert "test: auc " in done.out
    facts = record(folder / "m")
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


def test_the_preset_is_said_and_stored(foci: Foci, folder: Path) -> None:
    small = ["--epochs", "1", "--set", "d=16", "--set", "hidden=8"]
    done = foci.done(*command(folder, "clam-sb", "subtypes", *small))
    assert (
        "training preset of clam-sb: objective.subtyping=True (the classes are taken for "
        "subtypes, which exclude each other)\n"
    ) in done.out
    assert record(folder / "subtypes")["recipe"]["objective"] == {"subtyping": True}
    more = ["--objective", "subtyping=false", "--lr", "2e-4"]
    foci.done(*command(folder, "clam-sb", "other", *small, *more))
    stored = record(folder / "other")["recipe"]
    assert (stored["objective"], stored["lr"], stored["epochs"]) == ({"subtyping": False}, 2e-4, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["abmi"], "abmi: is not a known backbone; did you mean 'abmil'?"),
        (["abmil", "--set", "widht=3"], "widht"),
        (["abmil", "--set", "d"], "--set d: is not of the form key=value"),
        (["abmil", "--set", "d=[1"], "--set d=[1: has a value that cannot be read"),
        (["abmil", "--device", "cuda:7"], "--device cuda:7: cannot be used"),
        (["abmil", "--objective", "subtyping=true"], "subtyping"),
        (["abmil", "--schedule", "wavy"], "schedule"),
        (["abmil", "--set", "d=-3"], "d: cannot be -3; Input should be greater than 0"),
        (
            ["attrimil", "--lr", "1e3", "--set", "d=8", "--set", "scorer_hidden=4"],
            "attrimil, train epoch 1: the training loss is nan; lower --lr (it is 1000)",
        ),
    ],
)
def test_mistakes_are_one_line(foci: Foci, folder: Path, arguments: list[str], says: str) -> None:
    name, *more = arguments
    assert says in foci.refused(*command(folder, name, "m", *more))
    assert not (folder / "m" / "backbone.json").exists()


def test_unlabelled_slides_are_left_out_after_the_split(foci: Foci, folder: Path) -> None:
    table = folder / "labels.csv"
    rows = without_splits(table)
    rows[1:7] = [row.rsplit(",", 1)[0] + "," for row in rows[1:7]]
    table.write_text("\n".join(rows) + "\n")
    foci.done(*command(folder, "abmil", "m", *QUICK))
    divided = Cohort.read(folder / "features", table, cache=False).with_splits(seed=0)
    expected = [s.slide_id for s in divided.split("train") if s.label is not None]
    facts = record(folder / "m")
    assert facts["trained_on"] == expected


def test_a_split_that_lacks_a_class_has_no_auc_and_says_so(foci: Foci, tmp_path: Path) -> None:
    toy_cohort(tmp_path, classes="abc")
    table = tmp_path / "labels.csv"
    rows = table.read_text().splitlines()
    table.write_text("\n".join(r for r in rows if not r.endswith((",c,val", ",c,test"))) + "\n")
    done = foci.done(*command(tmp_path, "abmil", "m", *QUICK))
    for split in ("val", "test"):
        said = f"note: no {split} slide is of class c: AUC is undefined there"
        assert done.out.splitlines().count(said) == 1
        assert f"\n{split}: auc -, accuracy " in done.out
    assert done.out.index("note: no val") < done.out.index("train 1/3")
    assert "no train slide" not in done.out
    facts = record(tmp_path / "m")
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


def report(number: int, of: int = 20) -> EpochReport:
    return EpochReport("train", number, of, 0.5, {"bag": 0.5}, 0.4, 0.9, best=False)


def test_the_split_and_the_classes_are_said_before_training(foci: Foci, folder: Path) -> None:
    done = foci(*command(folder, "abmil", "m", *QUICK))
    assert (
        "splits: as in labels.csv\n"
        "  train: 12 slides of 12 patients (a 6, b 6)\n"
        "  val: 6 slides of 6 patients (a 3, b 3)\n"
        "  test: 6 slides of 6 patients (a 3, b 3)\n"
    ) in done.out
    assert done.out.index("  test: 6 slides") < done.out.index("train 1/3")
    without_splits(folder / "labels.csv")
    made = foci.done(*command(folder, "abmil", "made", *QUICK, "--seed", "2"))
    assert "splits: made by patient, 70, 10 and 20 % of each class, seed 2\n" in made.out
    assert sum(record(folder / "made")["slides"].values()) == 24


def test_the_time_is_estimated_after_the_first_epoch(caplog: pytest.LogCaptureFixture) -> None:
    seconds = iter([100.0, 130.0])
    lines = EpochLines(clock=lambda: next(seconds))
    lines.starting(0, 40)
    lines(report(1))
    assert caplog.messages[0].startswith("train  1/20  loss 0.500")
    assert caplog.messages[1] == (
        "one epoch took 30 s: about 20 min for 39 more epochs; Ctrl-C keeps every finished epoch, "
        "and the same command resumes"
    )
    lines(report(2))
    assert len(caplog.messages) == 3


def test_a_resumed_run_says_from_where_and_the_last_epoch_needs_no_estimate(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = EpochLines()
    lines.starting(19, 20)
    lines(report(20))
    assert caplog.messages[0] == "resuming after 19 of 20 epochs"
    assert len(caplog.messages) == 2


def stop_after(monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    """Ctrl-C in the epoch after these."""
    whole, seen = loop._epoch, []

    def epoch(*arguments: Any) -> Any:
        if len(seen) == epochs:
            raise KeyboardInterrupt
        seen.append(1)
        return whole(*arguments)

    monkeypatch.setattr(loop, "_epoch", epoch)


def test_ctrl_c_says_what_is_kept_and_the_same_command_goes_on(
    foci: Foci, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        stopped = foci(*command(folder, "abmil", "m", *QUICK))
    assert stopped.code == 130
    assert stopped.err == (
        "foci: stopped after 2 of 3 epochs, which are kept; run the same command again to resume\n"
    )
    done = foci.done(*command(folder, "abmil", "m", *QUICK))
    assert "resuming after 2 of 3 epochs\n" in done.out
    assert "train 2/3" not in done.out
    log = (folder / "m" / LOG).read_text()
    assert [line.split(" ", 1)[1] for line in log.splitlines()].count("stopped") == 1
    assert log.count("train abmil, foci ") == 2
    assert log.splitlines()[-1].endswith(" finished")


def test_ctrl_c_before_the_first_epoch(
    foci: Foci, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(monkeypatch, 0)
    stopped = foci(*command(folder, "abmil", "m", *QUICK))
    assert stopped.err == (
        "foci: stopped before the first epoch was finished; run the same command again\n"
    )


def test_a_complete_training_ends_at_once(
    foci: Foci, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = foci(*command(folder, "abmil", "m", *QUICK))
    before = {path.name: path.read_bytes() for path in (folder / "m").iterdir()}
    monkeypatch.setattr(Cohort, "readable", lambda *_: pytest.fail("a file was read"))
    again = foci.done(*command(folder, "abmil", "m", *QUICK))
    lines = again.out.splitlines()
    assert lines[0] == f"{folder / 'm'}: this training is complete, nothing is computed again"
    assert lines[1:] == [
        line
        for line in first.out.splitlines()
        if line.startswith(("train: a", "val: a", "test: a"))
    ]
    assert {path.name: path.read_bytes() for path in (folder / "m").iterdir()} == before


@pytest.mark.parametrize("change", ["option", "table", "file"])
def test_another_training_in_the_same_folder_is_refused(
    foci: Foci, folder: Path, change: str
) -> None:
    foci.done(*command(folder, "abmil", "m", *QUICK))
    more = ["--set", "d=8"] if change == "option" else []
    table = folder / "labels.csv"
    if change == "table":
        table.write_text(table.read_text().replace("c23,b,test", "c23,b,train"))
    if change == "file":
        path = folder / "features" / "s00.h5"
        path.write_bytes(path.read_bytes() + b"\0")
    again = foci.refused(*command(folder, "abmil", "m", *QUICK, *more))
    what = "m: already holds a backbone trained with other options, slides or feature files; "
    assert what + "choose another --out" in again


def test_settings_from_a_file_and_options_over_them(foci: Foci, folder: Path) -> None:
    (folder / "train.yaml").write_text(
        "backbone: abmil\nfeatures: features\nlabels: labels.csv\nout: m\nepochs: 3\nlr: 0.003\n"
        "widths: {d: 16, hidden: 8}\n"
    )
    foci.done("train", "--config", folder / "train.yaml", "--epochs", "1", "--set", "d=12")
    facts = record(folder / "m")
    assert (facts["recipe"]["epochs"], facts["recipe"]["lr"]) == (1, 0.003)
    assert (facts["config"]["d"], facts["config"]["hidden"]) == (12, 8)


def test_mistakes_in_the_file_are_one_line(foci: Foci, folder: Path) -> None:
    path = folder / "train.yaml"
    path.write_text("backbone: abmil\nfeatures: f\nlabels: l\nout: m\nepoch: 3\n")
    refused = foci("train", "--config", path)
    assert refused.err == (
        "foci: epoch: is not a setting of TrainingConfiguration; did you mean 'epochs'?\n"
    )
    assert foci("train", "abmil", "--features", "f", "--labels", "l").err == (
        "foci: --out: is missing; give it, or name it in --config\n"
    )
    assert "foci: backbone: is missing" in foci("train", "--features", "f").err
