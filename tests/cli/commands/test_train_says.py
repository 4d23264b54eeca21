"""What ``foci train`` says: the split, the time, what a stop leaves, that it is complete."""

import json
from pathlib import Path
from typing import Any

import pytest

from foci import Cohort
from foci.backbones.training import EpochReport, loop
from foci.cli.commands.train import EpochLines
from foci.files.run_log import LOG
from tests.cli.commands.test_train import QUICK, command
from tests.cli.invoke import Foci
from tests.makers.cohorts import toy_cohort


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    toy_cohort(tmp_path)
    return tmp_path


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
    table = folder / "labels.csv"
    table.write_text(
        "\n".join(row.rsplit(",", 1)[0] for row in table.read_text().splitlines()) + "\n"
    )
    made = foci(*command(folder, "abmil", "made", *QUICK, "--seed", "2"))
    assert "splits: made by patient, 70, 10 and 20 % of each class, seed 2\n" in made.out


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
    done = foci(*command(folder, "abmil", "m", *QUICK))
    assert done.code == 0, done.err
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
    again = foci(*command(folder, "abmil", "m", *QUICK))
    assert again.code == 0, again.err
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
    assert foci(*command(folder, "abmil", "m", *QUICK)).code == 0
    more = ["--set", "d=8"] if change == "option" else []
    table = folder / "labels.csv"
    if change == "table":
        table.write_text(table.read_text().replace("c23,b,test", "c23,b,train"))
    if change == "file":
        path = folder / "features" / "s00.h5"
        path.write_bytes(path.read_bytes() + b"\0")
    again = foci(*command(folder, "abmil", "m", *QUICK, *more))
    assert again.code == 2
    what = "m: already holds a backbone trained with other options, slides or feature files; "
    assert what + "choose another --out" in again.err


def test_settings_from_a_file_and_options_over_them(foci: Foci, folder: Path) -> None:
    (folder / "train.yaml").write_text(
        "backbone: abmil\nfeatures: features\nlabels: labels.csv\nout: m\nepochs: 3\nlr: 0.003\n"
        "widths: {d: 16, hidden: 8}\n"
    )
    done = foci("train", "--config", folder / "train.yaml", "--epochs", "1", "--set", "d=12")
    assert done.code == 0, done.err
    facts = json.loads((folder / "m" / "backbone.json").read_text())
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
