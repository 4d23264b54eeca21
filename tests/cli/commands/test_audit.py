"""``foci audit`` from files to answers, and everything that can be wrong with them."""

import csv
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from foci import backbones
from foci.audits import StoredAudit
from foci.audits.reveal import SlideReveal
from foci.bags import Bag, Slide
from foci.reports.text import MAP, ORDER, TILES
from foci.selectors import DEFAULT
from tests.backbones.checkpoints.official_files import D_IN as OFFICIAL_D_IN
from tests.backbones.checkpoints.official_files import OFFICIAL
from tests.cli.invoke import Foci
from tests.makers import features as write
from tests.makers.cohorts import D_IN, make_files

QUICK = [
    "--seeds", "0", "--random-orders", "2", "--k-max", "8", "--kappa", "0.6",
    "--set", "recipe_settings.schedule.epochs=1", "--set", "recipe_settings.schedule.warmup=0",
    "--set", "deletion=[1, 2, 4]", "--set", "n_boot=20", "--set", "block=2",
]  # fmt: skip
NO_SELECTOR = ["--rankings", "native,random"]


def command(folder: Path, *more: str | Path, labels: bool = True) -> list[str]:
    places = ["--model", folder / "abmil", "--features", folder / "features", "--out",
              folder / "out"]  # fmt: skip
    if labels:
        places += ["--labels", folder / "labels.csv"]
    return ["audit", *map(str, [*places, *QUICK, *more])]


def test_alarms_are_printed_before_and_after_the_run(foci: Foci, project: Path) -> None:
    done = foci(*command(project, *NO_SELECTOR, "--classes", "b,a"))
    assert done.code == 0
    says = "ALARM, class order: The classes were given in the order b, a; the model was trained"
    assert done.out.startswith(says)
    assert done.out.count("ALARM, class order") == 2
    assert done.out.rindex(says) < done.out.index("Prediction view")
    again = foci(*command(project, *NO_SELECTOR))
    assert "this audit is complete" in again.out
    assert "ALARM, class order" in again.out, "it was said of this folder"


def answers_in(project: Path, out: str) -> None:
    told = StoredAudit.load(project).answers
    for question, one in ((MAP, told.map), (TILES, told.tiles), (ORDER, told.order)):
        assert f"\n{question} {one.answer}\n" in out
        assert " ".join(one.sentences) in " ".join(out.split())


def test_from_files_to_answers(foci: Foci, project: Path) -> None:
    done = foci.done(*command(project))
    assert done.err == ""
    assert f"selector of seed 0: {DEFAULT} (" in done.out
    answers_in(project / "out", done.out)
    out = project / "out"
    assert done.out.splitlines()[-5:] == [
        f"wrote {out}",
        f"open {(out / 'report.html').resolve().as_uri()}",
        f"next foci view {out}",
        f"     foci report {out} --kappa 0.8",
        f"     foci compare {out} ANOTHER-AUDIT --out compare.html",
    ]
    found = StoredAudit.load(project / "out")
    assert found.manifest.name == "abmil"
    assert found.manifest.sources["features"] == str((project / "features").resolve())
    assert found.curves.rankings == ("native", "evidence", "selector", "random")
    assert (project / "out" / "report.html").stat().st_size > 1000

    again = foci.done(*command(project))
    assert "this audit is complete, nothing is computed again" in again.out
    answers_in(project / "out", again.out)
    line = foci.refused(*command(project, "--kappa", "0.7"))
    assert "holds an audit with kappa = 0.6, not 0.7; give --force to redo it, or anoth" in line
    foci.done(*command(project, "--kappa", "0.7", "--force", *NO_SELECTOR))
    assert not (project / "out" / "selectors").exists()
    assert StoredAudit.load(project / "out").summary.kappa == 0.7


def spoil(features: Path) -> dict[str, str]:
    """A bad file of every kind, beside the five good ones, and what has to be said of each."""
    good = (features / "s09.h5").read_bytes()
    (features / "truncated.h5").write_bytes(good[:1500])
    (features / "text.h5").write_text("not HDF5")
    (features / "empty.h5").write_bytes(b"")
    with h5py.File(features / "nothing.h5", "w") as file:
        file["tiles"] = np.ones((3, D_IN))
    write.trident(features / "zero.h5", np.zeros((0, D_IN), np.float32), write.grid(0))
    holes = write.features(4, D_IN)
    holes[2, 1] = np.inf
    write.trident(features / "inf.h5", holes, write.grid(4))
    write.trident(features / "narrow.h5", write.features(4, 5), write.grid(4))
    write.trident(features / "torn.h5", write.features(4, D_IN), write.grid(9))
    return {
        "truncated": "truncated.h5: ", "text": "is not an HDF5 file", "empty": "empty.h5: ",
        "nothing": "has neither 'features' nor 'feats'", "zero": "has no tiles",
        "inf": "1 of 4 tiles hold NaN or Inf (first: tile 2)",
        "narrow": "features are 5 wide, the model reads 8",
        "torn": "has 9 coordinates for 4 tiles", "absent": "no feature file of this name",
    }  # fmt: skip


def test_every_kind_of_bad_file_is_skipped_and_listed(foci: Foci, project: Path) -> None:
    says = spoil(project / "features")
    write.uni2h(project / "features" / "batched.h5", write.features(6, D_IN), write.grid(6))
    table = (project / "labels.csv").read_text()
    rows = [f"{name},p-{name},a,test\n" for name in [*says, "batched"]]
    (project / "labels.csv").write_text(table.replace("s00,", "".join(rows) + "s00,"))
    done = foci(*command(project, *NO_SELECTOR))
    assert done.code == 3, done.err  # more than 10 % of the slides
    assert done.out.index("warning: ") < done.out.index("Prediction view")
    assert "Traceback" not in done.out + done.err
    found = StoredAudit.load(project / "out")
    assert [s.slide_id for s in found.slides] == ["batched", "s09", "s10", "s11", "s12", "s13"]
    assert {s.slide_id for s in found.skipped} == set(says)
    for slide in found.skipped:
        assert says[slide.slide_id] in str(slide.skipped)
        assert f"skipped {slide.slide_id}: {slide.skipped}" in done.out
    with (project / "out" / "tables" / "skipped.csv").open() as file:
        assert {row["slide_id"] for row in csv.DictReader(file)} == set(says)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--rankings", "nativ"], "nativ: is not a known ranking; did you mean 'native'?"),
        (["--rankings", "native,native"], "rankings: name 'native' twice"),
        (["--rankings", ","], "rankings: are none"),
        (["--rankings", "from-file"], "needs the file with the scores; write from-file=PATH"),
        (
            ["--profile", "papre"],
            "papre: is not a known profile; did you mean 'paper'? Known: foci",
        ),
        (["--kappa", "1.5"], "kappa: cannot be 1.5; Input should be less than 1"),
        (["--k-max", "0"], "k_max: cannot be 0"),
        (["--n-cap", "0"], "n_cap: cannot be 0"),
        (["--seeds", "0,x"], "--seeds: cannot be '0,x'; give whole numbers"),
        (["--seeds", "1,1"], "seeds: name 1 twice"),
        (["--recipe", "paper"], "paper: is not a known selector recipe"),
        (["--split", "train"], "split: 'train' is what the selector is fitted on"),
        (["--split", "holdout"], "split 'holdout': has no slides (splits: test, train, val)"),
        (["--layout", "tridnt"], "tridnt: is not a known feature layout; did you mean 'trident'?"),
        (["--device", "cuda:7"], "--device cuda:7: cannot be used"),
        (["--classes", "a,b,c"], "classes: are a, b, c, but the model was trained on a, b; leave"),
        (["--classes", "a,x"], "classes: are a, x, but the model was trained on a, b; leave them"),
        (["--set", "kapa=1"], "kapa: is not a setting of AuditConfiguration; did you mean 'kappa'"),
        (["--set", "kappa"], "--set kappa: is not of the form key=value"),
        (["--set", "recipe_settings.budget.x=1"], f"budget.x: is no setting of {DEFAULT}"),
        (["--config", "gone.yaml"], "gone.yaml: cannot be read"),
        (["--model", "gone"], "gone: does not exist; check the path"),
        (["--features", "gone"], "gone: does not exist; give the folder"),
        (["--labels", "gone.csv"], "gone.csv: "),
        (["--out", "labels.csv"], "labels.csv: is a file; choose another --out"),
        (["--out", "features"], "features: is not empty and holds no audit; choose another"),
    ],
)
def test_mistakes_are_one_line(foci: Foci, project: Path, more: list[str], says: str) -> None:
    assert says in foci.refused(*command(project, *more))
    assert not (project / "out").exists()


def test_what_has_to_be_given(foci: Foci) -> None:
    assert "model: is missing; give it" in foci.refused("audit")


def test_labels_are_only_needed_as_a_target(foci: Foci, project: Path) -> None:
    line = foci.refused(*command(project, "--target", "label", labels=False))
    assert "target: cannot be the label: the cohort has none; give a label table" in line
    done = foci.done(*command(project, *NO_SELECTOR, labels=False))
    assert "note: the cohort has no splits: every slide is audited" in done.out
    assert len(StoredAudit.load(project / "out").slides) == 14


def test_a_selector_is_fitted_without_labels_too(foci: Foci, project: Path) -> None:
    table = project / "labels.csv"
    table.write_text(table.read_text().replace("s00,c0,a,train", "s00,c0,,train"))
    line = foci.refused(*command(project, "--fit-target", "label"))
    assert "fit_target: cannot be the label: 1 of 9 slides to fit on without a label; fill" in line
    done = foci.done(*command(project, "--recipe", "paper-ste"))
    said = "note: the selector is fitted for the model's own prediction: 1 of 9 slides to fit on"
    assert f"{said} without a label\n" in done.out
    found = StoredAudit.load(project / "out").manifest
    assert found.settings.fit_target == "prediction"
    assert any(note.startswith("the selector is fitted for") for note in found.notes)


def test_the_papers_protocol(foci: Foci, project: Path) -> None:
    foci.done(*command(project, "--profile", "paper"))
    found = StoredAudit.load(project / "out")
    stored = json.loads((project / "out" / "manifest.json").read_text())["settings"]
    assert (stored["profile"], stored["recipe"], stored["fit_target"]) == (
        "paper", "paper-ste", "label",
    )  # fmt: skip
    assert (stored["kappa"], stored["seeds"]) == (0.6, [0])  # given
    assert found.summary.first_view == "label"
    assert found.manifest.settings.profile == "paper"
    fitted = json.loads((project / "out" / "selectors" / "seed-0" / "selector.json").read_text())
    assert fitted["target"] == "label"
    shape = {"d": 16, "outputs": 1, "hidden": 7365, "columns": 0}
    assert fitted["head"] == shape
    (project / "audit.yaml").write_text("profile: paper\n")
    again = foci(*command(project, "--config", project / "audit.yaml"))
    assert "this audit is complete, nothing is computed again" in again.out


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("s01,c1,b,train", "s00,c1,b,train", "s00"),
        ("s13,c12,b,test", "s13,c0,b,test", "patient c0: is in train and test; put all slides"),
        ("s13,c12,b,test", "s13,c12,z,test", "slide s13: has the label 'z', not one of a, b"),
    ],
)
def test_tables_that_are_refused(foci: Foci, project: Path, old: str, new: str, says: str) -> None:
    table = project / "labels.csv"
    assert old in table.read_text()
    table.write_text(table.read_text().replace(old, new))
    assert says in foci.refused(*command(project))


def test_one_class_in_the_audited_split_leaves_no_auc(foci: Foci, project: Path) -> None:
    table = project / "labels.csv"
    table.write_text(table.read_text().replace(",b,test", ",a,test"))
    foci.done(*command(project, *NO_SELECTOR))
    found = StoredAudit.load(project / "out").summary
    assert found.full_bag.auc is None
    assert any("AUC is undefined" in note for note in found.notes)


def test_checkpoints_that_are_refused(foci: Foci, project: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), project / "pickled.pt")
    assert "pickled.pt: " in foci.refused(*command(project, "--model", project / "pickled.pt"))
    (project / "text.pt").write_text("hello")
    line = foci.refused(*command(project, "--model", project / "text.pt"))
    assert "text.pt: is not a checkpoint" in line
    torch.manual_seed(0)
    wide = backbones.create("abmil", d_in=16, n_classes=2, d=16, hidden=8)
    backbones.save(wide, project / "wide", classes=["a", "b"])
    line = foci.refused(*command(project, "--model", project / "wide"))
    assert "features are 8 wide, the model reads 16 (so in all of 14 slides looked at)" in line


def test_a_foreign_checkpoint_is_announced(foci: Foci, tmp_path: Path) -> None:
    make_files(tmp_path, d_in=OFFICIAL_D_IN)
    official = OFFICIAL["mhim-v1-gated"]
    torch.save(official.state(official.model()), tmp_path / "abmil")
    done = foci.done(*command(tmp_path, *NO_SELECTOR))
    assert "note: activation='relu' in the attention" in done.out
    assert "note: the checkpoint does not name its classes: taken to be a, b" in done.out
    notes = StoredAudit.load(tmp_path / "out").manifest.notes
    assert any("activation='relu'" in note for note in notes)


def test_set_wins_over_options_and_options_over_the_file(foci: Foci, project: Path) -> None:
    (project / "audit.yaml").write_text(
        f"model: {project / 'abmil'}\nfeatures: {project / 'features'}\nout: {project / 'out'}\n"
        "rankings: [native]\nkappa: 0.7\nk_max: 6\nblock: 3\nn_boot: 20\n"
    )
    foci.done("audit", "--config", project / "audit.yaml", "--k-max", "5", "--kappa", "0.65",
                "--set", "kappa=0.6")  # fmt: skip
    found = json.loads((project / "out" / "manifest.json").read_text())["settings"]
    assert (found["kappa"], found["k_max"], found["block"]) == (0.6, 5, 3)
    assert found["rankings"] == ["native"]


def test_stopped_and_started_again(
    foci: Foci, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reveal, seen = SlideReveal.__call__, []

    def interrupted(self: SlideReveal, slide: Slide, bag: Bag, units: object) -> object:
        seen.append(slide.slide_id)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return reveal(self, slide, bag, units)  # type: ignore[arg-type]

    monkeypatch.setattr(SlideReveal, "__call__", interrupted)
    stopped = foci(*command(project, *NO_SELECTOR))
    assert stopped.code == 130
    assert stopped.err == "foci: stopped; run the same command again to resume\n"
    seen.clear()
    done = foci.done(*command(project, *NO_SELECTOR))
    assert "resuming with what is there" in done.out
    assert seen == ["s11", "s12", "s13"]  # the first block was whole
    assert len(StoredAudit.load(project / "out").slides) == 5
