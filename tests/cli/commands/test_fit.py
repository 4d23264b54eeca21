"""``foci fit`` from a trained backbone to a selector."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from foci import backbones, selectors
from foci.backbones import fingerprint
from foci.bags import Cohort
from tests.backbones.every import small
from tests.cli.invoke import Foci
from tests.makers.cohorts import planted

QUICK = ["--set", "schedule.epochs=2", "--set", "schedule.warmup=0"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    planted(tmp_path)
    backbones.save(small("abmil", "paper", 2), tmp_path / "model", classes=["b", "a"], n_cap=9)
    return tmp_path


PAPER = ["--recipe", "paper-ste"]


def command(folder: Path, *more: str, labels: bool = True) -> list[str]:
    places = [folder / "model", "--features", folder / "features", "--out", folder / "out"]
    table = ["--labels", folder / "labels.csv"] if labels else []
    return ["fit", *map(str, [*places, *table]), *more]


def written(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "out" / "selector.json").read_text()))


def test_fits_and_writes(foci: Foci, folder: Path) -> None:
    (folder / "features" / "s1.h5").write_bytes(b"cut")
    done = foci.done(*command(folder, *PAPER, *QUICK))
    assert "skipped s1: " in done.out
    first = next(text for text in done.out.splitlines() if text.startswith("fit 1/2"))
    for term in ("suff", "hinge", "excl", "contig", "budget", "full", "val loss", "val aukc"):
        assert re.search(rf"\b{term} -?\d+\.\d{{3}}\b", first), term
    assert "the backbone is unchanged" in done.out
    facts = written(folder)
    assert facts["classes"] == ["b", "a"]  # the model's order, not the alphabet
    assert facts["n_cap"] == 9
    assert facts["slides"] == {"train": 7, "val": 4}
    model = backbones.load(folder / "model")
    assert facts["backbone"]["fingerprint"] == fingerprint(model)
    assert len(selectors.load(folder / "out", model).history) == 2
    log = (folder / "out" / "foci.log").read_text().splitlines()
    assert log[0].split(" ", 1)[1].startswith("fit paper-ste (")
    assert [line.split(" ", 1)[1] for line in log[1:-1]] == done.out.splitlines()
    assert log[-1].endswith(" finished")


def test_the_default_needs_no_labels_and_says_what_it_gained(foci: Foci, folder: Path) -> None:
    done = foci.done(*command(folder, *QUICK, labels=False))
    assert re.search(r"^fit 1/1 .* val decisive -?\d", done.out, re.MULTILINE)
    assert f"{selectors.DEFAULT} (" in done.out
    assert "best epoch 0" in done.out or "best epoch 1" in done.out


def test_without_labels(foci: Foci, folder: Path) -> None:
    more = ["--target", "prediction", "--choose-by", "loss", "--recipe", "paper-ste"]
    done = foci.done(*command(folder, *more, *QUICK, labels=False))
    assert "val aukc" not in done.out
    facts = written(folder)
    assert (facts["target"], facts["site"]) == ("prediction", "feature")


def test_slides_that_are_not_fitted_on_do_not_matter(foci: Foci, folder: Path) -> None:
    table = folder / "labels.csv"
    table.write_text(table.read_text() + "\ns99,c99,a,test")  # one class only, and no file
    foci.done(*command(folder, "--classes", "b, a", *QUICK))
    assert written(folder)["classes"] == ["b", "a"]


def test_a_taken_folder_is_refused_before_anything_is_read(foci: Foci, folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "selector.json").write_text("{}")
    for file in (folder / "features").iterdir():
        file.write_bytes(b"cut")
    assert "already holds a fitted selector" in foci.refused(*command(folder, *QUICK))


def test_options_of_the_checkpoint_reach_it(foci: Foci, folder: Path) -> None:
    line = foci.refused(*command(folder, "--set", "model_options.aligned=false"))
    assert "model: has no option 'aligned'" in line


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (PAPER, "--labels: is missing; give a label table, or --target prediction"),
        (["--set", "budget.q=3"], f"budget.q: is no setting of {selectors.DEFAULT}"),
        (["--target", "prediction", "--set", "weights.tau=3"], "weights.tau: "),
        (["--target", "prediction", "--set", "sites=[nowhere]"], "sites.0: "),
    ],
)
def test_mistakes_are_one_line(foci: Foci, folder: Path, more: list[str], says: str) -> None:
    assert says in foci.refused(*command(folder, *more, labels=False))
    assert not (folder / "out").exists()


@pytest.mark.parametrize("choose_by", [None, "aukc", "loss"])
def test_the_library_fits_what_the_command_fits(
    foci: Foci, folder: Path, choose_by: str | None
) -> None:
    quick = ["--set", "schedule.epochs=3", "--set", "schedule.warmup=0"]
    more = [] if choose_by is None else ["--choose-by", choose_by]
    labels = folder / "labels.csv"
    foci.done(
        *command(folder, "--labels", str(labels), "--out", str(folder / "out"), *quick, *more)
    )
    cohort = Cohort.read(folder / "features", labels, classes=["b", "a"], n_cap=9).readable()
    plan = selectors.vary(selectors.recipe("default"), {"schedule.epochs": 3, "schedule.warmup": 0})
    chosen = {} if choose_by is None else {"criterion": choose_by}
    selectors.fit(backbones.load(folder / "model"), cohort, plan, out=folder / "library", **chosen)
    for name in ("selector.json", "selector.safetensors"):
        assert (folder / "out" / name).read_bytes() == (folder / "library" / name).read_bytes()
