"""``--expect``: answers of the user's own code decide what a checkpoint leaves open."""

import json
from pathlib import Path

import pytest
import torch

import foci as library
from foci.audits import StoredAudit
from foci.backbones import load
from foci.errors import CheckpointError
from tests.backbones.checkpoints.official_files import D_IN, OFFICIAL
from tests.cli.commands.test_audit import NO_SELECTOR, QUICK
from tests.cli.invoke import Foci
from tests.makers.cohorts import make_files, read

SLIDES = ("s00", "s05", "s11")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """CLAM-MB as the ACMIL code trains it, and what that code prints for three slides."""
    make_files(tmp_path, d_in=D_IN)
    official = OFFICIAL["clam-mb-ungated"]
    torch.save(official.state(official.model()), tmp_path / "clam.pt")
    own = load(tmp_path / "clam.pt", plus_one=True)
    cohort = read(tmp_path, n_cap=10**6)
    lines = ["slide_id,a,b"]
    for slide in SLIDES:
        p = own.predict(torch.from_numpy(cohort.bag(slide).features)).tolist()
        lines.append(f"{slide}.svs,{p[0]:.7f},{p[1]:.7f}")
    (tmp_path / "expected.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def command(project: Path, *more: str | Path) -> list[str]:
    places = ["--model", project / "clam.pt", "--features", project / "features", "--labels",
              project / "labels.csv", "--out", project / "out"]  # fmt: skip
    return ["audit", *map(str, [*places, *QUICK, *NO_SELECTOR, *more])]


def test_the_variant_that_agrees_is_audited_and_recorded(foci: Foci, project: Path) -> None:
    done = foci.done(*command(project, "--expect", project / "expected.csv"))
    note = "note: the probabilities in expected.csv agree on 3 slides (projection_activation="
    assert note in done.out
    assert "plus_one=True; largest difference" in done.out
    assert "plus_one=False: a softmax" not in done.out
    manifest = json.loads((project / "out" / "manifest.json").read_text())
    record = manifest["backbone"]["agreement"]
    assert record["taken"]["options"] == {"projection_activation": "relu", "plus_one": True}
    assert record["taken"]["difference"] < 1e-6
    assert (record["kind"], record["slides"]) == ("probabilities", 3)
    assert len(record["tried"]) == 4
    assert record["tried"][1]["difference"] > 1e-5
    assert manifest["sources"]["expect"] == str((project / "expected.csv").resolve())
    found = StoredAudit.load(project / "out")
    assert found.manifest.backbone.agreement is not None
    assert any("expected.csv agree on 3 slides" in note for note in found.manifest.notes)
    assert "expected.csv agree on 3 slides" in (project / "out" / "report.html").read_text()
    again = foci(*command(project, "--set", "model_options.plus_one=true"))
    assert "this audit is complete" in again.out


def test_a_setting_gives_another_tolerance(foci: Foci, project: Path) -> None:
    strict = ["--expect", project / "expected.csv", "--set", "expect_tolerance=1e-9"]
    (project / "expected.csv").write_text("slide_id,p0,p1\ns00,0.5,0.5\n")
    assert "at most 0.05 is agreement" in foci.refused(*command(project, *strict))


def test_a_selector_is_fitted_to_the_variant_that_agrees(foci: Foci, project: Path) -> None:
    done = foci.done(
        "fit", project / "clam.pt", "--features", project / "features", "--labels",
        project / "labels.csv", "--out", project / "selector", "--expect",
        project / "expected.csv", "--set", "schedule.epochs=1", "--set", "schedule.warmup=0",
    )  # fmt: skip
    assert "plus_one=True; largest difference" in done.out
    own = load(project / "clam.pt", plus_one=True)
    library.selectors.load(project / "selector", own)


def test_the_same_in_python(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    cohort, table = read(project), project / "expected.csv"
    quick = {"rankings": ("native",), "k_max": 4, "deletion": (1,), "kappa": 0.6, "n_boot": 20}
    done = library.audit(project / "clam.pt", cohort, project / "a", expect=table, **quick)
    agreement = done.manifest.backbone.agreement
    assert agreement is not None
    assert agreement.taken.options["plus_one"] is True

    library.audit(project / "clam.pt", cohort, **quick)
    assert any("plus_one=False" in record.message for record in caplog.records)

    said = {"plus_one": True, "projection_activation": "relu"}
    told = library.audit(project / "clam.pt", cohort, model_options=said, **quick)
    assert told.manifest.backbone.notes == []

    own = load(project / "clam.pt", plus_one=True)
    given = library.audit(own, cohort, expect=table, **quick)
    assert given.manifest.backbone.agreement is not None
    assert given.manifest.backbone.notes[0] == own.notes[0]
    with pytest.raises(CheckpointError, match="clam-mb: does not give the probabilities"):
        table.write_text("slide_id,a,b\ns00,0.11,0.89\n")
        library.audit(own, cohort, expect=table, **quick)
