"""``foci audit`` from files to answers, and everything that can be wrong with them."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from foci.audits import StoredAudit
from foci.audits.manifest import read_manifest
from foci.audits.reveal import SlideReveal
from foci.bags import Bag, Slide
from foci.reports.text import MAP, ORDER, TILES
from foci.selectors import DEFAULT
from tests.cli.invoke import Foci
from tests.makers import features as write
from tests.makers.cohorts import D_IN

QUICK = [
    "--seeds", "0", "--random-orders", "2", "--k-max", "8", "--kappa", "0.6",
    "--set", "recipe_settings.schedule.epochs=1", "--set", "recipe_settings.schedule.warmup=0",
    "--set", "deletion=[1, 2, 4]", "--set", "n_boot=20", "--set", "block=2",
]  # fmt: skip
NO_SELECTOR = ["--rankings", "native,random"]


def command(folder: Path, *more: str | Path, model: str = "abmil") -> list[str]:
    places = ["--model", folder / model, "--features", folder / "features", "--out",
              folder / "out", "--labels", folder / "labels.csv"]  # fmt: skip
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


def test_a_bad_file_among_others_is_skipped_and_listed(foci: Foci, project: Path) -> None:
    features, table = project / "features", project / "labels.csv"
    (features / "truncated.h5").write_bytes((features / "s09.h5").read_bytes()[:1500])
    with h5py.File(features / "nothing.h5", "w") as file:
        file["tiles"] = np.ones((3, D_IN))
    write.uni2h(features / "batched.h5", write.features(6, D_IN), write.grid(6))
    says = {"truncated": "truncated.h5: ", "nothing": "has neither 'features' nor 'feats'"}
    rows = [f"{name},p-{name},a,test\n" for name in [*says, "batched"]]
    table.write_text(table.read_text().replace("s00,", "".join(rows) + "s00,"))
    done = foci(*command(project, *NO_SELECTOR))
    assert done.code == 3, done.err  # more than 10 % of the slides
    found = StoredAudit.load(project / "out")
    assert [s.slide_id for s in found.slides] == ["batched", "s09", "s10", "s11", "s12", "s13"]
    assert {s.slide_id for s in found.skipped} == set(says)
    for slide in found.skipped:
        assert says[slide.slide_id] in str(slide.skipped)
        assert f"skipped {slide.slide_id}: {slide.skipped}" in done.out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--rankings", "nativ"], "nativ: is not a known ranking; did you mean 'native'?"),
        (["--kappa", "1.5"], "kappa: cannot be 1.5; Input should be less than 1"),
        (["--seeds", "0,x"], "--seeds: cannot be '0,x'; give whole numbers"),
        (["--split", "holdout"], "split 'holdout': has no slides (splits: test, train, val)"),
        (["--layout", "tridnt"], "tridnt: is not a known feature layout; did you mean 'trident'?"),
        (["--device", "cuda:7"], "--device cuda:7: cannot be used"),
        (["--classes", "a,x"], "classes: are a, x, but the model was trained on a, b; leave them"),
        (["--set", "kapa=1"], "kapa: is not a setting of AuditConfiguration; did you mean 'kappa'"),
        (["--set", "kappa"], "--set kappa: is not of the form key=value"),
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


def test_an_array_job_and_nothing_else_is_printed(project: Path, foci: Foci) -> None:
    asked, out = command(project, *NO_SELECTOR), project / "out"
    job = foci.done(*asked, "--slurm", "--slurm-option=--partition=cpu").out
    assert job.startswith("#!/bin/bash\n#SBATCH --job-name=foci-abmil\n#SBATCH --array=0\n")
    assert "#SBATCH --partition=cpu\n" in job
    element = shlex.split(job.strip().splitlines()[-1])
    assert element[:5] == ["exec", sys.executable, "-m", "foci", "audit-shard"]
    assert element[-2:] == ["--index", "$SLURM_ARRAY_TASK_ID"]
    (wrapped,) = (one.removeprefix("--wrap=") for one in shlex.split(job) if "--wrap=" in one)
    check = wrapped.partition("; exec ")[0]
    cancelled = subprocess.run(["bash", "-c", check], capture_output=True, text=True)
    assert (cancelled.returncode, cancelled.stderr.splitlines()[-1]) == (
        1,
        "not everything is computed: print the job again and submit it",
    )
    said = foci.done(*element[4:-1], "0").out
    assert said.splitlines()[-1] == f"computed 3 shards of {out}"
    assert subprocess.run(["bash", "-c", check]).returncode == 0
    assert "complete" not in read_manifest(out).status
    foci.done(*asked)
    assert read_manifest(out).status == "complete"
    assert "audit-shard" not in foci.done("--help").out
