"""Masked hard mining: the published step, its schedules, and resuming a killed run."""

import copy
import math
from typing import Any

import pytest
import torch

from foci import backbones
from foci.backbones.layers.attention import ema_update
from foci.backbones.models.mhim import MHIM, MaskedHardMining, cosine_schedule, soft_cross_entropy
from foci.errors import FociError
from tests.backbones.golden_mhim import GOLDEN, official
from tests.backbones.golden_weights import features


def small(**settings: Any) -> tuple[MHIM, MaskedHardMining]:
    torch.manual_seed(0)
    model = MHIM(6, 2, d=8, hidden=4).double()
    objective = model.make_objective(**settings)
    assert isinstance(objective, MaskedHardMining)
    return model, objective


def batch(*sizes: int) -> backbones.Batch:
    generator = torch.Generator().manual_seed(1)
    bags = [torch.randn(n, 6, generator=generator, dtype=torch.float64) for n in sizes]
    return backbones.pad(bags, labels=[i % 2 for i in range(len(sizes))])


@pytest.mark.parametrize("step", GOLDEN["train_steps"], ids=lambda s: f"{s['variant']}-{s['r_l']}")
def test_student_step_equals_the_published_code(step: dict[str, Any]) -> None:
    model = official(step["variant"])
    objective = model.make_objective(
        mask_random=step["r"],
        mask_low=step["r_l"],
        mask_high=step["r_h"],
        mask_high_draw=step["r_hr"],
        alpha=step["alpha"],
    )
    objective.begin_stage("student", total_steps=10)
    objective.teacher.load_state_dict(official(step["variant"], "teacher.").state_dict())
    model.load_state_dict(official(step["variant"]).state_dict())
    bag = backbones.pad([features(step["n_tiles"], 1024)], labels=[step["label"]])

    _, visible = objective.teach(bag)
    loss = objective(bag)

    assert (~visible[0]).nonzero().flatten().tolist() == step["masked_ids"]
    assert objective.terms == pytest.approx(
        {"bag": step["ce"], "consistency": step["alpha"] * step["soft_ce"]}, abs=1e-10
    )
    assert loss.item() == pytest.approx(step["total"], abs=1e-10)


@pytest.mark.parametrize("case", GOLDEN["soft_cross_entropy"], ids=str)
def test_soft_cross_entropy_equals_the_published_code(case: dict[str, Any]) -> None:
    teacher, student = (
        torch.tensor([case[k]], dtype=torch.float64) for k in ("teacher", "student")
    )
    got = soft_cross_entropy(teacher, student, case["temp_t"])
    assert got.item() == pytest.approx(case["loss"], abs=1e-10)


def test_soft_cross_entropy_by_hand() -> None:
    teacher, student = torch.tensor([[0.1, 0.0]]), torch.tensor([[0.0, math.log(3.0)]])
    p = math.e / (math.e + 1)  # softmax of 0.1 / 0.1 and 0
    want = -p * math.log(1 / 4) - (1 - p) * math.log(3 / 4)
    assert soft_cross_entropy(teacher, student, 0.1).item() == pytest.approx(want)


@pytest.mark.parametrize("case", GOLDEN["ema"], ids=str)
def test_teacher_trails_by_one_minus_momentum(case: dict[str, float]) -> None:
    model, objective = small(momentum=case["m"], anneal_momentum=False)
    objective.begin_stage("student", total_steps=3)
    for module, value in ((model, case["student"]), (objective.teacher, case["teacher"])):
        for parameter in module.parameters():
            torch.nn.init.constant_(parameter, value)

    objective.after_step()

    for parameter in objective.teacher.parameters():
        torch.testing.assert_close(
            parameter, torch.full_like(parameter, case["teacher_after"]), rtol=0, atol=1e-12
        )
        assert not parameter.requires_grad
    assert all((parameter == case["student"]).all() for parameter in model.parameters())


def test_schedules_equal_the_published_code_and_reach_their_ends() -> None:
    _, objective = small(mask_high=0.03)
    steps = len(GOLDEN["high_schedule"])
    objective.begin_stage("student", total_steps=steps)
    high, momentum = [], []
    for _ in range(steps):
        high.append(objective.current_ratios["high"])
        momentum.append(objective.current_momentum)
        objective.after_step()

    assert high == pytest.approx(GOLDEN["high_schedule"], abs=1e-12)
    assert momentum == pytest.approx(GOLDEN["momentum_schedule"], abs=1e-12)
    assert objective.current_ratios["high"] == 0.0
    assert objective.current_momentum == 1.0
    assert cosine_schedule(0.9999, 1.0, 0.5) == pytest.approx(0.99995)


def test_schedules_can_be_switched_off() -> None:
    _, objective = small(decay_high=False, anneal_momentum=False)
    objective.begin_stage("student", total_steps=2)
    objective.after_step()
    assert objective.current_ratios["high"] == 0.02
    assert objective.current_momentum == 0.9999


def test_baseline_is_plain_cross_entropy_and_moves_no_teacher() -> None:
    model, objective = small()
    model.eval()
    bags = batch(5, 3)
    before = copy.deepcopy(objective.teacher.state_dict())
    objective.begin_stage("teacher", total_steps=4)
    torch.nn.init.ones_(model.head.bias)

    loss = objective(bags)
    objective.after_step()

    probabilities = [model.predict(bags.features[i][bags.mask[i]])[i % 2].item() for i in (0, 1)]
    want = -sum(math.log(p) for p in probabilities) / 2
    assert loss.item() == pytest.approx(want, abs=1e-12)
    assert objective.terms == {"bag": loss.item()}
    for key, value in objective.teacher.state_dict().items():
        assert torch.equal(value, before[key])


def test_student_keeps_the_projection_only_and_the_teacher_the_baseline() -> None:
    model, objective = small()
    for parameter in model.parameters():
        parameter.data.normal_()
    baseline = copy.deepcopy(model.state_dict())

    torch.manual_seed(3)
    objective.begin_stage("student", total_steps=4)
    first = copy.deepcopy(model.state_dict())
    torch.manual_seed(3)
    model.restart()

    for key, value in model.state_dict().items():
        assert torch.equal(value, first[key])
        assert torch.equal(objective.teacher.state_dict()[key], baseline[key])
        assert torch.equal(value, baseline[key]) is key.startswith("projection")


def test_teacher_gets_no_gradient_and_uses_dropout_only_while_training() -> None:
    model, objective = small()
    objective.begin_stage("student", total_steps=4)
    bags = batch(9, 4)

    model.eval()
    assert torch.equal(objective.teach(bags)[0], objective.teach(bags)[0])
    model.train()
    assert not torch.equal(objective.teach(bags)[0], objective.teach(bags)[0])
    objective(bags).backward()

    assert all(parameter.grad is None for parameter in objective.teacher.parameters())
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_padding_is_never_visible_and_every_bag_keeps_its_share() -> None:
    model, objective = small(mask_random=0.5, mask_low=0.0, mask_high=0.0)
    model.eval()
    objective.begin_stage("student", total_steps=4)
    bags = batch(9, 4, 1)

    _, visible = objective.teach(bags)

    assert not (visible & ~bags.mask).any()
    assert visible.sum(dim=1).tolist() == [4, 2, 1]


def test_a_padded_batch_costs_the_mean_of_its_bags() -> None:
    settings = {"mask_random": 0.0, "mask_low": 0.3, "mask_high": 0.1}
    model, objective = small(**settings)
    model.eval()
    objective.begin_stage("student", total_steps=4)
    bags = batch(9, 4)
    alone = [
        backbones.pad([bags.features[i][bags.mask[i]]], labels=[int(bags.labels[i])])
        for i in range(2)
    ]

    together = objective(bags).item()

    assert together == pytest.approx(sum(objective(bag).item() for bag in alone) / 2, abs=1e-12)


def train(model: MHIM, objective: MaskedHardMining, steps: range) -> list[float]:
    losses = []
    for step in steps:
        torch.manual_seed(step)
        loss = objective(batch(9, 4))
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
        objective.after_step()
        losses.append(loss.item())
    return losses


def test_a_killed_run_resumes_exactly_in_a_fresh_objective() -> None:
    model, objective = small(momentum=0.5)
    objective.begin_stage("student", total_steps=6)
    train(model, objective, range(3))
    weights, state = copy.deepcopy(model.state_dict()), copy.deepcopy(objective.state_dict())
    want = train(model, objective, range(3, 6))

    again, fresh = small(momentum=0.5)
    again.load_state_dict(weights)
    fresh.load_state_dict(state)

    assert train(again, fresh, range(3, 6)) == want
    assert set(state) >= {"stage", "step", "total_steps", "teacher.head.weight"}


def test_ema_by_hand() -> None:
    slow, fast = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    for module, value in ((slow, 1.0), (fast, 3.0)):
        torch.nn.init.constant_(module.weight, value)
    ema_update(slow, fast, 0.75)
    assert slow.weight.item() == pytest.approx(0.75 * 1 + 0.25 * 3)


def test_unknown_stage_is_refused() -> None:
    _, objective = small()
    with pytest.raises(FociError, match=r"MHIM-MIL stage: is 'train'; use teacher or student"):
        objective.begin_stage("train", total_steps=1)
