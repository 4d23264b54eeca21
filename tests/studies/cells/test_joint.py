from pathlib import Path
from typing import Any

import pytest
import torch

from foci import selectors
from foci.backbones import fingerprint
from foci.errors import FociError
from foci.selectors import recipe, vary
from foci.selectors.fitting import new_head
from foci.selectors.losses import unit_box
from foci.studies import cells
from foci.studies.cells import train_jointly
from tests.backbones.every import small
from tests.makers.cohorts import planted


def test_it_trains_a_copy_and_leaves_the_classifier_alone(tmp_path: Path) -> None:
    cohort = planted(tmp_path)
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


def test_the_full_bag_loss_reaches_the_copy(tmp_path: Path) -> None:
    """With no rationale loss at all, joint training is plain training: the loss goes down."""
    cohort = planted(tmp_path)
    changes = {"schedule.epochs": 12, "schedule.warmup": 0, "schedule.peak": 0.2}
    plan = vary(recipe("freeze-only"), {**changes, "schedule.weight_decay": 0})
    _, _, result = train_jointly(small("abmil", "paper", 2), cohort, plan)
    assert result.epochs[-1]["loss"] < 0.5 * result.before["loss"]


def test_a_joint_copy_is_not_the_backbone_of_any_selector(tmp_path: Path) -> None:
    cohort = planted(tmp_path)
    plan = vary(recipe("paper-ste"), {"schedule.epochs": 1})
    model = small("abmil", "paper", 2)
    fitted = selectors.fit(model, cohort, plan)
    copy, _, _ = train_jointly(model, cohort, plan)
    assert not fitted.best.identity.matches(type(fitted.best.identity).of(copy))
    assert not hasattr(selectors, "train_jointly")


def one_step(name: str = "paper-ste") -> Any:
    """One epoch of a single step at the peak rate, without weight decay."""
    changes = {"epochs": 1, "warmup": 0, "batch_size": 64, "peak": 1e-3, "weight_decay": 0}
    return vary(recipe(name), {f"schedule.{key}": value for key, value in changes.items()})


def test_the_copy_learns_at_a_fifth_of_the_heads_rate(tmp_path: Path) -> None:
    """AdamW's first step moves every weight by the learning rate, whatever its gradient."""
    model, plan = small("abmil", "paper", 2), one_step()
    copy, head, _ = train_jointly(model, planted(tmp_path), plan)
    drawn = new_head(model, plan, seed=0)
    for before, after, rate in ((drawn, head, 1e-3), (model, copy, 2e-4)):
        pairs = zip(before.parameters(), after.parameters(), strict=True)
        farthest = max(float((p - q).detach().abs().max()) for p, q in pairs)
        assert farthest == pytest.approx(rate, rel=1e-2)


def test_the_rationale_losses_reach_head_and_copy(tmp_path: Path) -> None:
    cohort, model = planted(tmp_path), small("abmil", "paper", 2)
    both, full_only = (
        train_jointly(model, cohort, one_step(name)) for name in ("paper-ste", "freeze-only")
    )
    drawn = fingerprint(new_head(model, one_step(), seed=0))
    assert fingerprint(both[1]) != drawn
    assert fingerprint(full_only[1]) == drawn
    assert fingerprint(both[0]) != fingerprint(full_only[0])


def test_coordinates_are_those_of_the_unit_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort, batches = planted(tmp_path), []
    terms = cells.loss_terms
    monkeypatch.setattr(cells, "loss_terms", lambda b, *rest: batches.append(b) or terms(b, *rest))
    train_jointly(small("abmil", "paper", 2), cohort, one_step())
    (batch,) = batches
    assert float(batch.coords.max()) == 1
    rows = [coords[mask] for coords, mask in zip(batch.coords, batch.mask, strict=True)]
    wanted = [unit_box(torch.from_numpy(bag.coords)) for bag in cohort.split("train").bags()]
    for box in wanted:
        assert any(row.shape == box.shape and torch.equal(row, box) for row in rows)


def test_a_recipe_that_starts_as_evidence_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        FociError, match="starts as evidence of a classifier that changes meanwhile"
    ):
        train_jointly(small("abmil", "paper", 2), planted(tmp_path), recipe("tuned"))
