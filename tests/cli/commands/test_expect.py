"""``--expect``: answers of the user's own code decide what a checkpoint leaves open."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import foci as library
from foci.audits import StoredAudit
from foci.backbones import CallableBackbone, create, load, save
from foci.errors import CheckpointError
from tests.backbones.checkpoints.official_files import D_IN, OFFICIAL
from tests.cli.commands.test_audit import NO_SELECTOR
from tests.cli.commands.test_audit import command as audit_command
from tests.cli.invoke import Foci
from tests.makers.cohorts import Row, make_files, read, write_cohort

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
    return audit_command(project, *NO_SELECTOR, *more, model="clam.pt")


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
    cohort, table = read(project, n_cap=None), project / "expected.csv"
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


# The 1,024 tiles of largest norm speak for the other class.


@pytest.fixture
def opposite(tmp_path: Path) -> Path:
    """Mean pooling of two evidence columns; a third one makes the 1,024 weak tiles the longest."""
    tiles = np.repeat(np.float32([[0, 1, 3], [2.9, 0, 0]]), [1024, 476], axis=0)
    rows = [Row(f"s{i}", tiles + np.float32(i / 1000), f"c{i}", "ab"[i % 2], "test")
            for i in range(6)]  # fmt: skip
    write_cohort(tmp_path, rows)
    model = create("mean-mil", "official", d_in=3, n_classes=2, d=2).eval()
    with torch.no_grad():
        model.projection[0].weight.copy_(torch.eye(2, 3))
        model.projection[0].bias.zero_()
        model.head.weight.copy_(30 * torch.eye(2))
        model.head.bias.zero_()
    save(model, tmp_path / "model", classes=["a", "b"])
    bag = torch.from_numpy(rows[0].x)
    p = model.predict(bag).tolist()
    assert p[0] > 0.95
    kept = bag[bag.norm(dim=1).argsort(descending=True)[:1024]]
    assert model.predict(kept)[1] > 0.95, "the other class"
    (tmp_path / "expected.csv").write_text(f"slide_id,a,b\ns0,{p[0]!r},{p[1]!r}\n")
    return tmp_path


def audited(foci: Foci, folder: Path, *more: str) -> str:
    return foci.done(*audit_command(folder, *NO_SELECTOR, *more, model="model")).out


def followed(folder: Path) -> list[int]:
    curves = StoredAudit.load(folder / "out").curves.get("native")
    return [int(curve.full.argmax()) for curve in curves]


def test_all_tiles_of_the_users_model_are_audited(foci: Foci, opposite: Path) -> None:
    out = audited(foci, opposite, "--expect", str(opposite / "expected.csv"))
    assert followed(opposite) == [0] * 6
    assert "full bag: AUC" in out
    assert "cut to" not in out
    assert {slide.n_tiles for slide in StoredAudit.load(opposite / "out").slides} == {1500}


@pytest.mark.parametrize("cap", [["--n-cap", "1024"], ["--profile", "paper"]])
def test_a_cap_is_said_first(foci: Foci, opposite: Path, cap: list[str]) -> None:
    out = audited(foci, opposite, *cap)
    assert followed(opposite) == [1] * 6
    assert out.startswith(
        "of a slide at most 1,024 tiles are read, those with the largest features"
    )
    says = "6 of 6 slides were cut to 1,024 tiles"
    assert out.rindex(says) < out.index("tiles kept: AUC")
    assert "full bag" not in out
    manifest = StoredAudit.load(opposite / "out").manifest
    assert manifest.notes[0].startswith(says)
    assert manifest.slides is not None
    assert manifest.slides.cut == 6
    assert "6 of 6 slides cut to 1,024" in (opposite / "out" / "report.html").read_text()


def test_answers_are_compared_on_the_tiles_that_are_audited(foci: Foci, opposite: Path) -> None:
    says = foci.refused(
        "audit", "--model", opposite / "model", "--features", opposite / "features", "--out",
        opposite / "out", "--expect", opposite / "expected.csv", "--n-cap", "1024",
    )  # fmt: skip
    assert "does not give the probabilities in expected.csv" in says


def test_a_function_reads_all_tiles(opposite: Path) -> None:
    model = CallableBackbone(lambda x: 30 * x.mean(dim=0)[:2], 3, 2)
    cohort = library.Cohort.read(opposite / "features", opposite / "labels.csv", cache=False)
    done = library.audit(model, cohort, n_boot=20, rankings=("random",), random_orders=2)
    assert [int(curve.full.argmax()) for curve in done.curves.get("random", 0)] == [0] * 6
