"""ASMIL, gated and with queries: inference without the anchor, losses by hand and as published."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from foci import backbones
from foci.backbones.models.abmil import ABMIL
from foci.backbones.models.asmil import (
    ASMIL,
    ASMILObjective,
    ASMILQuery,
    ASMILQueryObjective,
    anchor_divergence,
    normalised_sigmoid,
)
from tests.backbones.golden_weights import features, golden, published


def make(seed: int = 0) -> ASMIL:
    torch.manual_seed(seed)
    return ASMIL(6, 2, d=4, hidden=4, head_hidden=4, projection_bias=False).double()


def batch(n: int = 12) -> backbones.Batch:
    generator = torch.Generator().manual_seed(1)
    bags = [torch.randn(m, 6, generator=generator, dtype=torch.float64) for m in (n, 5)]
    return backbones.pad(bags, [0, 1])


def pooled(model: ASMILQuery, x: torch.Tensor) -> torch.Tensor:
    tokens = model.embed(x)
    return torch.softmax(model.attend(tokens), dim=0).T @ tokens


def test_inference_is_abmil_whatever_the_anchor() -> None:
    model, x = make().eval(), batch().features[0]
    plain = ABMIL(**model.config).double().eval()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "anchor" not in k})
    with torch.no_grad():
        model.anchor.w.weight.fill_(7.0)
        torch.testing.assert_close(model(x), plain(x), rtol=0, atol=0)
        tokens = model.embed(x)
        torch.testing.assert_close(model.scores(tokens), plain.attention(tokens)[:, 0])


def test_loss_is_cross_entropy_plus_weighted_divergence() -> None:
    model, bags = make(), batch()
    with torch.no_grad():
        for parameter in model.anchor.parameters():
            parameter.normal_()
    objective = model.make_objective(beta=0.3, temperature=0.2)
    tokens = model.embed(bags.features)
    online, anchor = model.attention(tokens), model.anchor(tokens)
    divergence = anchor_divergence(online, anchor, bags.mask, temperature=0.2)
    bag = F.cross_entropy(model(bags.features, bags.mask), bags.labels)
    assert objective(bags).item() == pytest.approx((bag + 0.3 * divergence).item())
    assert objective.terms == {
        "bag": pytest.approx(bag.item()),
        "anchor": pytest.approx(0.3 * divergence.item()),
    }


def test_anchor_starts_as_a_copy_and_moves_by_one_minus_momentum() -> None:
    model = make()
    objective = model.make_objective(momentum=0.9)
    with torch.no_grad():
        for parameter in model.anchor.parameters():
            parameter.normal_()
    objective.begin_stage("train", 10)
    for slow, fast in zip(model.anchor.parameters(), model.attention.parameters(), strict=True):
        assert torch.equal(slow, fast)
    start = [p.clone() for p in model.anchor.parameters()]

    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    objective(batch()).backward()
    optimizer.step()
    objective.after_step()

    moved = zip(start, model.anchor.parameters(), model.attention.parameters(), strict=True)
    for before, slow, fast in moved:
        torch.testing.assert_close(slow, 0.9 * before + 0.1 * fast, rtol=0, atol=1e-12)
    assert not torch.equal(start[0], next(iter(model.anchor.parameters())))


def test_anchor_gets_no_gradient_and_passes_none_to_the_tokens() -> None:
    """With the anchor alone in the loss of a fixed online map, the projection must not move."""
    model, bags = make(), batch()
    objective = ASMILObjective(model)
    objective(bags).backward()
    assert all(p.grad is None and not p.requires_grad for p in model.anchor.parameters())

    projected = model.projection[0].weight.grad.clone()
    model.zero_grad()
    tokens = model.embed(bags.features)
    online, anchor = model.attention(tokens), model.anchor(tokens.detach())
    loss = F.cross_entropy(model(bags.features, bags.mask), bags.labels)
    (loss + anchor_divergence(online, anchor, bags.mask)).backward()
    torch.testing.assert_close(projected, model.projection[0].weight.grad, rtol=0, atol=1e-12)


def test_tile_drop_thins_bags_in_training_only() -> None:
    model, bags = make(), batch(40)
    full = ASMILObjective(model)(bags).item()
    thinned = ASMILObjective(model, tile_drop=0.5)
    torch.manual_seed(0)
    assert len({thinned(bags).item() for _ in range(4)}) == 4
    model.eval()
    assert thinned(bags).item() == full


def test_a_thinned_bag_is_a_smaller_bag() -> None:
    """Of three tiles floor(0.34 * 3) = 1 is dropped: the loss is that of two of them."""
    model = make()
    x = batch().features[0, :3]
    pairs = [backbones.pad([x[torch.arange(3) != gone]], [0]) for gone in range(3)]
    thinned = ASMILObjective(model, tile_drop=0.34)
    torch.manual_seed(0)
    seen = {round(thinned(backbones.pad([x], [0])).item(), 9) for _ in range(30)}
    assert seen == {round(ASMILObjective(model)(pair).item(), 9) for pair in pairs}


def test_padding_changes_neither_value_nor_gradient() -> None:
    torch.manual_seed(0)
    online = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    anchor = torch.randn(2, 5, 3, dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    value = anchor_divergence(online, anchor, mask)
    singles = [
        anchor_divergence(online[0], anchor[0]),
        anchor_divergence(online[1, :2], anchor[1, :2]),
    ]
    assert value.item() == pytest.approx((singles[0] + singles[1]).item() / 2)
    (gradient,) = torch.autograd.grad(value, online)
    assert torch.isfinite(gradient).all()
    assert gradient[1, 2:].abs().sum() == 0


@pytest.mark.parametrize("case", golden("asmil_query")["plain"])
def test_agrees_with_the_official_expression_summed_over_tiles(case: dict[str, Any]) -> None:
    """The official numbers are [head, query, tile] and averaged over the tiles."""
    online = torch.tensor(case["online"], dtype=torch.float64).flatten(0, 1).T
    anchor = torch.tensor(case["anchor"], dtype=torch.float64).flatten(0, 1).T
    nsf = torch.tensor(case["nsf"], dtype=torch.float64).flatten(0, 1).T
    temperature = case["temperature"]
    torch.testing.assert_close(normalised_sigmoid(anchor / temperature), nsf, rtol=0, atol=1e-12)
    got = anchor_divergence(online, anchor, temperature=temperature).item()
    assert got == pytest.approx(case["loss_mean"] * len(online), abs=1e-9)


GOLDEN = golden("asmil_query")


@pytest.mark.parametrize("case", GOLDEN["losses"])
def test_loss_terms_agree_with_the_official_ones(case: dict[str, Any]) -> None:
    keys = GOLDEN["variants"][case["variant"]]["keys"]
    model = published(keys, scaled=case.get("scaled"))
    objective = model.make_objective(temperature=case["temperature"])
    assert isinstance(objective, ASMILQueryObjective)
    twin = published(keys, prefix="anchor.", scaled=case.get("scaled"))
    objective.anchor.load_state_dict(
        torch.nn.Sequential(twin.projection, twin.branches).state_dict()
    )
    objective(backbones.pad([features(case["n_tiles"], model.d_in)], [case["label"]]))
    assert objective.terms["bag"] == pytest.approx(case["slide_ce"], abs=1e-9)
    assert objective.terms["anchor"] == pytest.approx(case["anchor"], abs=1e-9)


@pytest.mark.parametrize("case", GOLDEN["dropping"])
def test_withholding_summaries_agrees_with_the_official_model(case: dict[str, Any]) -> None:
    model = published(GOLDEN["variants"][case["variant"]]["keys"], scaled=case.get("scaled"))
    keep = torch.ones(model.n_branches, dtype=torch.bool)
    keep[case["dropped_tokens"]] = False
    with torch.no_grad():
        summaries = model.branches.read(pooled(model, features(case["n_tiles"], model.d_in)))
        assert model.classify(summaries, keep).tolist() == pytest.approx(case["logits"], abs=1e-9)


def test_n_drop_withholds_that_many_summaries_in_training_only() -> None:
    torch.manual_seed(0)
    model = ASMILQuery(6, 2, d=8, heads=2, branches=3, dropout=0.0).double()
    bags = backbones.pad([torch.randn(9, 6, dtype=torch.float64)], [0])
    objective = ASMILQueryObjective(model, n_drop=2)
    summaries = model.branches.read(pooled(model, bags.features[0]))
    alone = [F.cross_entropy(model.classify(s[None]), bags.labels[0]) for s in summaries]
    torch.manual_seed(0)
    seen = set()
    for _ in range(30):
        objective(bags)
        seen.add(round(objective.terms["bag"], 9))
    assert seen == {round(value.item(), 9) for value in alone}
    model.eval()
    objective(bags)
    want = F.cross_entropy(model(bags.features), bags.labels)
    assert objective.terms["bag"] == pytest.approx(want.item())


def test_anchor_follows_and_gets_no_gradient() -> None:
    torch.manual_seed(0)
    model = ASMILQuery(6, 2, d=8, heads=2, branches=2).double()
    objective = ASMILQueryObjective(model, momentum=0.75)
    assert set(objective.state_dict()) == {f"anchor.{k}" for k in objective.anchor.state_dict()}
    assert all(not p.requires_grad for p in objective.parameters())
    with torch.no_grad():
        model.projection[0].weight.add_(1.0)
    objective.begin_stage("train", 1)
    torch.testing.assert_close(objective.anchor[0][0].weight, model.projection[0].weight)

    objective(backbones.pad([torch.randn(9, 6, dtype=torch.float64)], [0])).backward()
    assert all(p.grad is None for p in objective.anchor.parameters())
    before = objective.anchor[1].queries.clone()
    with torch.no_grad():
        model.branches.queries.add_(2.0)
    objective.after_step()
    torch.testing.assert_close(objective.anchor[1].queries, before + 0.25 * 2.0)
