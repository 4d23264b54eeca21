from pathlib import Path

import torch

from foci import selectors
from foci.backbones import fingerprint
from foci.selectors import recipe, vary
from foci.selectors.joint import train_jointly
from tests.backbones.every import small
from tests.selectors.cohorts import planted


def test_it_trains_a_copy_and_leaves_the_classifier_alone(tmp_path: Path) -> None:
    cohort = planted(tmp_path)
    plan = vary(recipe("paper-ste"), {"schedule.epochs": 2, "schedule.warmup": 0})
    for name in ("abmil", "transmil"):
        model = small(name, "paper", 2).eval().requires_grad_(False)
        before = fingerprint(model)
        state = torch.get_rng_state()
        result, again = (train_jointly(model, cohort, plan, seed=1) for _ in range(2))
        assert torch.equal(torch.get_rng_state(), state)
        assert fingerprint(model) == before
        assert not model.training
        assert fingerprint(result.backbone) != before
        assert fingerprint(result.backbone) == fingerprint(again.backbone)
        assert fingerprint(result.head) == fingerprint(again.head)
        assert set(result.before) == {"loss", "accuracy"}
        assert len(result.epochs) == 2
        assert result.epochs[-1] != result.before


def test_the_full_bag_loss_reaches_the_copy(tmp_path: Path) -> None:
    """With no rationale loss at all, joint training is plain training: the loss goes down."""
    cohort = planted(tmp_path)
    changes = {"schedule.epochs": 12, "schedule.warmup": 0, "schedule.peak": 0.2}
    plan = vary(recipe("freeze-only"), {**changes, "schedule.weight_decay": 0})
    result = train_jointly(small("abmil", "paper", 2), cohort, plan)
    assert result.epochs[-1]["loss"] < 0.5 * result.before["loss"]


def test_a_joint_copy_is_not_the_backbone_of_any_selector(tmp_path: Path) -> None:
    cohort = planted(tmp_path)
    plan = vary(recipe("paper-ste"), {"schedule.epochs": 1})
    model = small("abmil", "paper", 2)
    fitted = selectors.fit(model, cohort, plan)
    copy = train_jointly(model, cohort, plan).backbone
    assert not fitted.best.identity.matches(type(fitted.best.identity).of(copy))
    assert not hasattr(selectors, "train_jointly")
