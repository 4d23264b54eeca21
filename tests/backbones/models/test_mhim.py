"""MHIM-MIL: both encoders, the tiles it hides and a student's step, as published and by hand."""

import copy
import math
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foci import backbones
from foci.backbones.models.mhim import (
    MHIM,
    MaskedHardMining,
    cosine_schedule,
    mask_tiles,
    share,
    soft_cross_entropy,
)
from foci.errors import FociError
from tests.backbones.golden_weights import features, fill, golden, linear, published

GOLDEN = golden("mhim_attn")


def official(variant: dict[str, Any], prefix: str = "") -> MHIM:
    """Version 1's attention encoder under the formula's weights."""
    net = "online_encoder.attention"
    keys = linear("patch_to_emb.0", 512, 1024) | linear("predictor", variant["n_classes"], 512)
    names = ("attention_a.0", "attention_b.0", "attention_c")
    first, gate, last = names if variant["gated"] else ("attention.0", None, "attention.2")
    keys |= {f"{net}.{first}.weight": (128, 512), f"{net}.{last}.weight": (1, 128)}
    keys |= {f"{net}.{gate}.weight": (128, 512)} if gate else {}
    said = {key: variant[key] for key in ("activation", "projection_activation")}
    model: MHIM = published(keys, prefix, **said)
    return model


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda c: f"{c['variant']}-{c['n_tiles']}")
def test_logits_and_scores_equal_the_published_code(case: dict[str, Any]) -> None:
    model = official(case["variant"])
    bag = features(case["n_tiles"], 1024)

    assert model(bag).tolist() == pytest.approx(case["logits"], abs=1e-10)
    assert model.scores(model.embed(bag)).tolist() == pytest.approx(case["scores"], abs=1e-10)


def test_weights_start_xavier_normal_and_biases_at_zero() -> None:
    torch.manual_seed(0)
    model = backbones.create("mhim-mil", d_in=512, n_classes=2)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif parameter.numel() > 1000:
            assert parameter.std().item() == pytest.approx(
                (2 / sum(parameter.shape)) ** 0.5, rel=0.02
            )


RATIO = st.integers(0, 100).map(lambda percent: percent / 100)


def hidden(attention: torch.Tensor, seed: int = 0, **ratios: float) -> list[int]:
    zero = {"random": 0.0, "low": 0.0, "high": 0.0, "high_draw": 1.0}
    torch.manual_seed(seed)
    mask = mask_tiles(attention, **(zero | ratios))
    return mask.nonzero().flatten().tolist()


@pytest.mark.parametrize("row", GOLDEN["masks"], ids=str)
def test_each_set_has_the_published_size_and_tiles(row: dict[str, Any]) -> None:
    n = row["N"]
    attention = fill("attn", (1, n))[0]
    high = {"high": row["r_h"], "high_draw": row["r_hr"]}

    assert len(hidden(attention, random=row["r"])) == min(row["size_random"], n - 1)
    low = hidden(attention, low=row["r_l"])
    assert len(low) == min(row["size_low"], n - 1)
    assert low == row.get("low_ids", low)
    top = hidden(attention, **high)
    assert len(top) == min(row["size_high"], n - 1)
    assert top == row.get("high_ids", top)

    sizes = [row["size_random"], row["size_low"], row["size_high"]]
    for seed in range(5):
        union = hidden(attention, seed, random=row["r"], low=row["r_l"], **high)
        assert min(max(sizes), n - 1) <= len(union) <= min(sum(sizes), n - 1)
        assert n - len(union) == 1 or set(low) <= set(union)


@given(st.integers(1, 60), RATIO, RATIO, RATIO, RATIO, st.integers(0, 100))
def test_at_least_one_tile_stays_and_the_union_is_within_bounds(
    n: int, random: float, low: float, high: float, draw: float, seed: int
) -> None:
    attention = torch.randn(n, generator=torch.Generator().manual_seed(seed))
    ratios = {"random": random, "low": low, "high": high, "high_draw": draw}

    count = len(hidden(attention, seed, **ratios))

    assert count <= n - 1
    assert count >= min(n - 1, max(math.ceil(n * Fraction(str(r))) for r in (random, low, high)))


def test_drawn_tiles_come_from_the_highest_candidates_and_vary() -> None:
    attention = torch.arange(100.0)
    draws = {tuple(hidden(attention, seed, high=0.05, high_draw=0.5)) for seed in range(20)}
    assert all(len(draw) == 5 and min(draw) >= 90 for draw in draws)
    assert len(draws) > 10


@given(st.integers(0, 5000), st.integers(0, 100))
def test_share_is_the_exact_ceiling(n: int, percent: int) -> None:
    assert share(n, percent / 100) == math.ceil(Fraction(n * percent, 100))


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


def test_unknown_stage_is_refused() -> None:
    _, objective = small()
    with pytest.raises(FociError, match=r"MHIM-MIL stage: is 'train'; use teacher or student"):
        objective.begin_stage("train", total_steps=1)


@pytest.mark.parametrize("heads", [8, 2])
def test_self_attention_equals_the_published_code(heads: int) -> None:
    cases = golden(f"mhim_selfattn_h{heads}")["cases"]
    model = published(golden(f"mhim_selfattn_h{heads}")["keys"])
    assert len(cases) == 2
    assert any("scores" in case for case in cases)
    with torch.no_grad():
        for case in cases:
            n = case["n_tiles"]
            tokens = model.embed(features(n, 1024))
            logits = model.aggregate(tokens[None])[0]
            assert logits.tolist() == pytest.approx(case["logits"], abs=1e-9), n
            if "scores" in case:
                scores = model.scores(tokens)
                assert scores.shape == (n,)
                assert scores[:10].tolist() == pytest.approx(case["scores"], abs=1e-9), n
