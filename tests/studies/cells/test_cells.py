"""Every kind of cell, computed in this process on tiny cohorts."""

import json
from pathlib import Path

import numpy as np
import pytest

from foci import backbones, selectors
from foci.audits import StoredAudit
from foci.audits.prepare import ready_to_fit
from foci.progress import silent
from foci.studies.cells import VALIDATION, CostResult, JointResult, validation_aukc
from foci.studies.engine.in_process import InProcess
from foci.studies.engine.schedule import Tally, run_plan
from foci.studies.folder import StudyFolder
from foci.studies.study import read_cohort
from tests.makers.studies import make

SWEEPS = {
    "adaptive": {"recipes": ["paper-adaptive"], "backbones": ["abmil"]},
    "n_cap": {"values": [4], "backbones": ["abmil"]},
    "joint": {"epochs": 1, "backbones": ["abmil"]},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    folder = tmp_path_factory.mktemp("study")
    return make(
        folder, "one", seeds=[1], sweeps=SWEEPS, efficiency={"slides": 2, "repeats": 2}, n_cap=8
    )


@pytest.fixture(scope="module", autouse=True)
def tally(study: StudyFolder) -> Tally:
    return run_plan(study, study.plan(), InProcess(study))


def result(study: StudyFolder, **wanted: object) -> Path:
    (cell,) = study.plan().select(**wanted)
    folder = study.result(cell)
    assert folder is not None
    return folder


def test_all_cells_are_done(study: StudyFolder, tally: Tally) -> None:
    assert (tally.done, tally.failed, tally.skipped) == (len(study.plan()), {}, {})
    assert not any((study.path / "work").iterdir())
    assert all(study.seconds(cell) is not None for cell in study.plan())


def test_train(study: StudyFolder) -> None:
    folder = result(study, kind="train", backbone="abmil")
    assert backbones.load(folder).config["d"] == 16
    facts = json.loads((folder / "backbone.json").read_text())
    assert facts["recipe"]["seed"] == 1
    assert facts["n_cap"] == 8
    assert set(facts["metrics"]["test"]) == {"auc", "accuracy", "loss"}


def test_the_audit_takes_the_selector_of_the_fit(study: StudyFolder) -> None:
    model = backbones.load(result(study, kind="train", backbone="abmil"))
    fitted = result(study, kind="fit", backbone="abmil", variant="main")
    assert selectors.load(fitted, model).seed == 1
    audit = StoredAudit.load(result(study, kind="audit", backbone="abmil", variant="main"))
    own = audit.folder / "selectors" / "seed-1" / "selector.safetensors"
    assert own.read_bytes() == (fitted / "selector.safetensors").read_bytes()
    assert audit.curves.rankings == ("native", "selector", "random", "evidence")
    assert audit.manifest.settings.fit_target == "label"
    assert audit.manifest.name == "one/abmil/1/main"


def test_an_adaptive_budget_is_validated_up_to_32_tiles(study: StudyFolder) -> None:
    fitted = result(study, kind="fit", variant="paper-adaptive")
    stored = json.loads((fitted / "selector.json").read_text())
    kept = stored["history"][stored["best_epoch"] - 1]["score"]
    short = json.loads((fitted / "validation.json").read_text())
    assert short == {"aukc_32": pytest.approx(kept, abs=1e-6)}  # no bag has more than 8 tiles
    assert not (result(study, kind="fit", variant="main", backbone="abmil") / VALIDATION).exists()


def test_the_validation_area_ends_at_the_count(study: StudyFolder) -> None:
    model = backbones.load(result(study, kind="train", backbone="abmil"))
    fitted = selectors.load(result(study, kind="fit", variant="paper-adaptive"), model)
    cohort = read_cohort(study.study.cohorts["one"], None, 8)
    val = ready_to_fit(cohort, study.study.cohorts["one"].split_seed, silent).split("val")
    by_hand = []
    for slide in val:
        bag, target = val.bag(slide.slide_id), val.target(slide.slide_id)
        order = fitted.rank(bag.x).argsort(descending=True, stable=True)
        one, two = (float(model(bag.x[order[:k]][None]).softmax(-1)[0, target]) for k in (1, 2))
        by_hand.append((one + two) / 2 * (2 - 1) / 2)
    assert validation_aukc(fitted, val, "label", 2) == pytest.approx(np.mean(by_hand), abs=1e-5)


def test_variants_have_only_the_ranking_that_varies(study: StudyFolder) -> None:
    audit = StoredAudit.load(result(study, kind="audit", variant="paper-adaptive"))
    assert audit.curves.rankings == ("selector",)
    main = StoredAudit.load(result(study, kind="audit", backbone="abmil", variant="main"))
    assert audit.curves.slide_ids == main.curves.slide_ids
    assert audit.manifest.backbone.fingerprint == main.manifest.backbone.fingerprint


def test_another_cap_with_the_same_selector(study: StudyFolder) -> None:
    audit = StoredAudit.load(result(study, kind="audit", variant="n_cap"))
    main = StoredAudit.load(result(study, kind="audit", backbone="abmil", variant="main"))
    assert audit.manifest.selectors == main.manifest.selectors
    assert audit.curves.rankings == ("native", "selector")
    assert {slide.n_tiles for slide in audit.slides} == {4}
    assert {slide.n_tiles for slide in main.slides} == {7, 8}


def test_joint(study: StudyFolder) -> None:
    joint = JointResult.read(result(study, kind="joint"))
    facts = json.loads(
        (result(study, kind="train", backbone="abmil") / "backbone.json").read_text()
    )
    np.testing.assert_allclose(joint.before["loss"], facts["metrics"]["val"]["loss"], rtol=1e-6)
    assert joint.before["auc"] == facts["metrics"]["val"]["auc"]
    assert len(joint.epochs) == 1
    assert joint.epochs[0]["loss"] != joint.before["loss"]


def test_cost(study: StudyFolder) -> None:
    cost = CostResult.read(result(study, kind="cost", backbone="abmil"))
    assert (cost.device, cost.threads, cost.slides) == ("cpu", 1, ("s18", "s19"))
    assert cost.n_tiles == (8, 8)
    model = backbones.load(result(study, kind="train", backbone="abmil"))
    own = sum(p.numel() for p in model.parameters())
    assert cost.native is not None
    assert cost.selector is not None
    assert cost.native.parameters == own
    fitted = selectors.load(result(study, kind="fit", backbone="abmil", variant="main"), model)
    head = sum(p.numel() for p in fitted.best.head.parameters())
    assert cost.selector.parameters == own + head
    for one in (cost.native, cost.selector):
        assert 0 < one.inference_ms < one.srp_ms
        assert one.ratio > 1
