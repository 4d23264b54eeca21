"""``foci fit`` from a trained backbone to a selector."""

import json
from pathlib import Path

import pytest

from foci import backbones, selectors
from foci.backbones import fingerprint
from tests.backbones.every import small
from tests.cli.invoke import Foci
from tests.selectors.cohorts import planted

QUICK = ["--set", "schedule.epochs=2", "--set", "schedule.warmup=0"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    planted(tmp_path)
    backbones.save(small("abmil", "paper", 2), tmp_path / "model", classes=["b", "a"], n_cap=9)
    return tmp_path


def command(folder: Path, *more: str) -> list[str]:
    return ["fit", str(folder / "model"), "--features", str(folder / "features"), *more]


def test_fits_and_writes(foci: Foci, folder: Path) -> None:
    (folder / "features" / "s1.h5").write_bytes(b"cut")
    labels, out = ["--labels", str(folder / "labels.csv")], ["--out", str(folder / "out")]
    done = foci(*command(folder, *labels, *out, *QUICK))
    assert done.code == 0, done.err
    assert "skipped s1: " in done.out
    first = next(text for text in done.out.splitlines() if text.startswith("fit 1/2"))
    for term in ("suff", "hinge", "excl", "contig", "budget", "full", "val loss", "val aukc"):
        assert f"{term} 0." in first or f"{term} " in first
    assert "the backbone is unchanged" in done.out
    facts = json.loads((folder / "out" / "selector.json").read_text())
    assert facts["classes"] == ["b", "a"]  # the model's order, not the alphabet
    assert facts["n_cap"] == 9
    assert facts["slides"] == {"train": 7, "val": 4}
    model = backbones.load(folder / "model")
    assert facts["backbone"]["fingerprint"] == fingerprint(model)
    assert len(selectors.load(folder / "out", model).history) == 2
    again = foci(*command(folder, *labels, *out, *QUICK))
    assert again.code == 2
    assert "already holds a fitted selector" in again.err


def test_without_labels(foci: Foci, folder: Path) -> None:
    more = ["--target", "prediction", "--choose-by", "loss", "--recipe", "paper-ste"]
    done = foci(*command(folder, "--out", str(folder / "out"), *more, *QUICK))
    assert done.code == 0, done.err
    assert "val aukc" not in done.out
    facts = json.loads((folder / "out" / "selector.json").read_text())
    assert (facts["target"], facts["site"]) == ("prediction", "feature")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([], "--labels: is missing; give a label table, or --target prediction"),
        (["--recipe", "paper"], "paper: is not a known selector recipe"),
        (["--set", "budget.q=3"], f"budget.q: is no setting of {selectors.DEFAULT}"),
        (["--target", "prediction", "--set", "weights.tau=3"], "weights.tau: "),
        (["--target", "prediction", "--set", "sites=[nowhere]"], "sites.0: "),
    ],
)
def test_mistakes_are_one_line(foci: Foci, folder: Path, more: list[str], says: str) -> None:
    done = foci(*command(folder, "--out", str(folder / "out"), *more))
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert not (folder / "out").exists()
