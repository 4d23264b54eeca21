"""Every kind of cell on tiny cohorts, joint training by hand, and peak memory."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foci import backbones, selectors
from foci.audits import StoredAudit
from foci.audits.prepare import ready_to_fit
from foci.backbones import Backbone, fingerprint
from foci.bags import Cohort
from foci.engines.base import InProcess
from foci.errors import FociError
from foci.selectors import recipe, vary
from foci.selectors.fitting import new_head
from foci.selectors.objective import unit_box
from foci.studies import cells
from foci.studies.cells import (
    VALIDATION,
    CostResult,
    JointResult,
    peak_mb,
    train_jointly,
    validation_aukc,
)
from foci.studies.plan import StudyFolder
from foci.studies.run import CellWork, Tally, run_plan
from foci.studies.study import read_cohort
from tests.backbones.every import small
from tests.makers.cohorts import planted
from tests.makers.studies import make

SWEEPS = {
    "adaptive": {"recipes": ["paper-adaptive"], "backbones": ["abmil"]},
    "n_cap": {"values": [4], "backbones": ["abmil"]},
    "joint": {"epochs": 1, "backbones": ["abmil"]},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    cost = {"slides": 2, "repeats": 2}
    folder = tmp_path_factory.mktemp("study")
    return make(folder, "one", seeds=[1], sweeps=SWEEPS, efficiency=cost, n_cap=8)


@pytest.fixture(scope="module", autouse=True)
def tally(study: StudyFolder) -> Tally:
    plan = study.plan()
    return run_plan(study, plan, InProcess(CellWork.of(study, plan)))


def result(study: StudyFolder, **wanted: object) -> Path:
    (cell,) = study.plan().select(**wanted)
    folder = study.result(cell)
    assert folder is not None
    return folder


@pytest.fixture(scope="module")
def model(study: StudyFolder, tally: Tally) -> Backbone:
    return backbones.load(result(study, kind="train", backbone="abmil"))


@pytest.fixture(scope="module")
def main(study: StudyFolder, tally: Tally) -> StoredAudit:
    return StoredAudit.load(result(study, kind="audit", backbone="abmil", variant="main"))


@pytest.fixture(scope="module")
def record(study: StudyFolder, tally: Tally) -> dict[str, Any]:
    """What the training of the model has noted."""
    folder = result(study, kind="train", backbone="abmil")
    return dict(json.loads((folder / "backbone.json").read_text()))


def test_all_cells_are_done(study: StudyFolder, tally: Tally) -> None:
    assert (tally.done, tally.failed, tally.skipped) == (len(study.plan()), {}, {})
    assert not any((study.path / "work").iterdir())
    assert all(study.seconds(cell) is not None for cell in study.plan())


def test_train(model: Backbone, record: dict[str, Any]) -> None:
    assert model.config["d"] == 16
    assert (record["recipe"]["seed"], record["n_cap"]) == (1, 8)
    assert set(record["metrics"]["test"]) == {"auc", "accuracy", "loss"}


def test_the_audit_takes_the_selector_of_the_fit(
    study: StudyFolder, model: Backbone, main: StoredAudit
) -> None:
    fitted = result(study, kind="fit", backbone="abmil", variant="main")
    assert selectors.load(fitted, model).seed == 1
    own = main.folder / "selectors" / "seed-1" / "selector.safetensors"
    assert own.read_bytes() == (fitted / "selector.safetensors").read_bytes()
    assert main.curves.rankings == ("native", "selector", "random", "evidence")
    assert main.manifest.settings.fit_target == "label"
    assert main.manifest.name == "one/abmil/1/main"


def test_the_audit_names_its_sources(study: StudyFolder, main: StoredAudit) -> None:
    entry = study.study.cohorts["one"]
    trained = result(study, kind="train", backbone="abmil")
    assert main.manifest.sources["model"] == str(trained.resolve())
    assert main.manifest.sources["features"] == str(entry.features.resolve())
    assert main.manifest.sources["labels"] == str(entry.labels.resolve())


def test_an_adaptive_budget_is_validated_up_to_32_tiles(study: StudyFolder) -> None:
    fitted = result(study, kind="fit", variant="paper-adaptive")
    stored = json.loads((fitted / "selector.json").read_text())
    kept = stored["history"][stored["best_epoch"] - 1]["score"]
    short = json.loads((fitted / "validation.json").read_text())
    assert short.pop("own_sha256")
    assert short == {"aukc_32": pytest.approx(kept, abs=1e-6)}  # no bag has more than 8 tiles
    assert not (result(study, kind="fit", variant="main", backbone="abmil") / VALIDATION).exists()


def test_the_validation_area_ends_at_the_count(study: StudyFolder, model: Backbone) -> None:
    fitted = selectors.load(result(study, kind="fit", variant="paper-adaptive"), model)
    cohort = read_cohort(study.study.cohorts["one"], None, 8)
    val = ready_to_fit(cohort, study.study.cohorts["one"].split_seed).split("val")
    by_hand = []
    for slide in val:
        bag, target = val.bag(slide.slide_id), val.target(slide.slide_id)
        order = fitted.rank(bag.x).argsort(descending=True, stable=True)
        one, two = (float(model(bag.x[order[:k]][None]).softmax(-1)[0, target]) for k in (1, 2))
        by_hand.append((one + two) / 2 * (2 - 1) / 2)
    assert validation_aukc(fitted, val, "label", 2) == pytest.approx(np.mean(by_hand), abs=1e-5)


def test_variants_have_only_the_ranking_that_varies(study: StudyFolder, main: StoredAudit) -> None:
    audit = StoredAudit.load(result(study, kind="audit", variant="paper-adaptive"))
    assert audit.curves.rankings == ("selector",)
    assert audit.curves.slide_ids == main.curves.slide_ids
    assert audit.manifest.backbone.fingerprint == main.manifest.backbone.fingerprint


def test_another_cap_with_the_same_selector(study: StudyFolder, main: StoredAudit) -> None:
    audit = StoredAudit.load(result(study, kind="audit", variant="n_cap"))
    assert audit.manifest.selectors == main.manifest.selectors
    assert audit.curves.rankings == ("native", "selector")
    assert {slide.n_tiles for slide in audit.slides} == {4}
    assert {slide.n_tiles for slide in main.slides} == {7, 8}


def test_joint(study: StudyFolder, record: dict[str, Any]) -> None:
    joint = JointResult.read(result(study, kind="joint"))
    np.testing.assert_allclose(joint.before["loss"], record["metrics"]["val"]["loss"], rtol=1e-6)
    assert joint.before["auc"] == record["metrics"]["val"]["auc"]
    assert len(joint.epochs) == 1
    assert joint.epochs[0]["loss"] != joint.before["loss"]


def test_cost(study: StudyFolder, model: Backbone) -> None:
    cost = CostResult.read(result(study, kind="cost", backbone="abmil"))
    assert (cost.device, cost.threads, cost.slides) == ("cpu", 1, ("s18", "s19"))
    assert cost.n_tiles == (8, 8)
    own = sum(p.numel() for p in model.parameters())
    assert cost.native is not None
    assert cost.selector is not None
    assert cost.native.parameters == own
    fitted = selectors.load(result(study, kind="fit", backbone="abmil", variant="main"), model)
    head = sum(p.numel() for p in fitted.best.head.parameters())
    assert cost.selector.parameters == own + head
    for one in (cost.native, cost.selector):
        assert min(one.inference_ms, one.srp_ms, one.ratio) > 0


def test_times_are_medians_of_turns(
    study: StudyFolder, model: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prediction takes 1, 9 and 2 s by this clock, the reveal after it 30, 10 and 20 s."""
    seconds = [0.0, 1.0, 1.0, 31.0, 31.0, 40.0, 40.0, 50.0, 50.0, 52.0, 52.0, 72.0]
    bag = next(iter(read_cohort(study.study.cohorts["one"], None, 8).bags()))
    monkeypatch.setattr(cells.time, "perf_counter", iter(seconds).__next__)
    cost = cells.measure(model, [bag], None, 4, 3)
    assert (cost.inference_ms, cost.srp_ms, cost.ratio) == (2000.0, 20_000.0, 10.0)


# Joint training


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    return planted(tmp_path_factory.mktemp("planted"))


def test_it_trains_a_copy_and_leaves_the_classifier_alone(cohort: Cohort) -> None:
    plan = vary(recipe("paper-ste"), {"schedule.epochs": 2, "schedule.warmup": 0})
    for name in ("abmil", "transmil"):
        model = small(name, "paper", 2).eval().requires_grad_(False)
        before = fingerprint(model)
        state = torch.get_rng_state()
        copy, head, result = train_jointly(model, cohort, plan, seed=1)
        again = train_jointly(model, cohort, plan, seed=1)
        assert torch.equal(torch.get_rng_state(), state)
        assert fingerprint(model) == before
        assert not model.training
        assert fingerprint(copy) != before
        assert fingerprint(copy) == fingerprint(again[0])
        assert fingerprint(head) == fingerprint(again[1])
        assert result == again[2]
        assert set(result.before) == {"auc", "loss", "accuracy"}
        assert len(result.epochs) == 2
        assert result.epochs[-1] != result.before


def test_the_full_bag_loss_reaches_the_copy(cohort: Cohort) -> None:
    """With no rationale loss at all, joint training is plain training: the loss goes down."""
    changes = {"schedule.epochs": 12, "schedule.warmup": 0, "schedule.peak": 0.2}
    plan = vary(recipe("freeze-only"), {**changes, "schedule.weight_decay": 0})
    _, _, result = train_jointly(small("abmil", "paper", 2), cohort, plan)
    assert result.epochs[-1]["loss"] < 0.5 * result.before["loss"]


def one_step(name: str = "paper-ste") -> Any:
    """One epoch of a single step at the peak rate, without weight decay."""
    changes = {"epochs": 1, "warmup": 0, "batch_size": 64, "peak": 1e-3, "weight_decay": 0}
    return vary(recipe(name), {f"schedule.{key}": value for key, value in changes.items()})


def test_the_copy_learns_at_a_fifth_of_the_heads_rate(cohort: Cohort) -> None:
    """AdamW's first step moves every weight by the learning rate, whatever its gradient."""
    model, plan = small("abmil", "paper", 2), one_step()
    copy, head, _ = train_jointly(model, cohort, plan)
    drawn = new_head(model, plan, seed=0)
    for before, after, rate in ((drawn, head, 1e-3), (model, copy, 2e-4)):
        pairs = zip(before.parameters(), after.parameters(), strict=True)
        farthest = max(float((p - q).detach().abs().max()) for p, q in pairs)
        assert farthest == pytest.approx(rate, rel=1e-2)


def test_the_rationale_losses_reach_head_and_copy(cohort: Cohort) -> None:
    model = small("abmil", "paper", 2)
    both, full_only = (
        train_jointly(model, cohort, one_step(name)) for name in ("paper-ste", "freeze-only")
    )
    drawn = fingerprint(new_head(model, one_step(), seed=0))
    assert fingerprint(both[1]) != drawn
    assert fingerprint(full_only[1]) == drawn
    assert fingerprint(both[0]) != fingerprint(full_only[0])


def test_coordinates_are_those_of_the_unit_box(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, terms = [], cells.loss_terms
    monkeypatch.setattr(cells, "loss_terms", lambda b, *rest: batches.append(b) or terms(b, *rest))
    train_jointly(small("abmil", "paper", 2), cohort, one_step())
    (batch,) = batches
    assert float(batch.coords.max()) == 1
    rows = [coords[mask] for coords, mask in zip(batch.coords, batch.mask, strict=True)]
    wanted = [unit_box(torch.from_numpy(bag.coords)) for bag in cohort.split("train").bags()]
    for box in wanted:
        assert any(row.shape == box.shape and torch.equal(row, box) for row in rows)


def test_a_recipe_that_starts_as_evidence_is_refused(cohort: Cohort) -> None:
    with pytest.raises(FociError, match="starts as evidence of a classifier that changes"):
        train_jointly(small("abmil", "paper", 2), cohort, recipe("tuned"))


# Memory


def _pieces() -> list[torch.Tensor]:
    """50 MB in pieces that are too small for the kernel to hand out one by one."""
    return [torch.ones(25_000) for _ in range(500)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much a process uses")
def test_memory_that_was_freed_before_counts_again() -> None:
    before = _pieces()
    del before
    for _ in range(2):
        assert 40 < peak_mb(_pieces) < 80
    assert peak_mb(lambda: None) < 5


def test_where_it_cannot_be_read_the_call_still_happens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    called: list[int] = []
    monkeypatch.setattr(cells, "_REFS", cells.Path(f"{tmp_path}/none/clear_refs"))
    assert math.isnan(peak_mb(lambda: called.append(1)))
    assert called == [1]
