from typing import Any

import pytest
import torch
import torch.nn.functional as F

from foci import backbones
from foci.backbones.models.asmil import ASMILQuery, ASMILQueryObjective
from foci.errors import FociError
from tests.backbones.golden_branches import build, filled, official, pooled, read
from tests.backbones.golden_weights import features

GOLDEN = read("asmil_query")


@pytest.mark.parametrize(("branches", "published"), [(1, 922_628), (8, 2_773_778)])
def test_parameter_counts(branches: int, published: int) -> None:
    """The published module also holds a normalisation (2 x 256) that it never applies."""
    model = backbones.create("asmil", "official", d_in=1536, n_classes=2, d=256, branches=branches)
    assert sum(p.numel() for p in model.parameters()) == published - 2 * 256


@pytest.mark.parametrize("variant", GOLDEN["variants"])
def test_every_official_tensor_has_a_counterpart(variant: str) -> None:
    model = build(ASMILQuery, GOLDEN, {"variant": variant})
    shapes = {official(name): list(t.shape) for name, t in model.state_dict().items()}
    keys = GOLDEN["variants"][variant]["keys"]
    assert shapes == {k: v for k, v in keys.items() if not k.startswith("dimreduction.bn.")}


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_agrees_with_the_official_model(case: dict[str, Any]) -> None:
    model = build(ASMILQuery, GOLDEN, case)
    soft = build(ASMILQuery, GOLDEN, case, score="softmax")
    x = features(case["n_tiles"], model.d_in)
    with torch.no_grad():
        assert model(x).tolist() == pytest.approx(case["logits"], abs=1e-9)
        branches = model.branch_logits(pooled(model, x))
        torch.testing.assert_close(
            branches, torch.tensor(case["branch_logits"], dtype=torch.float64), rtol=0, atol=1e-9
        )
        tokens = model.embed(x)
        assert model.scores(tokens).tolist() == pytest.approx(case["mean_of_logits"], abs=1e-9)
        assert soft.scores(tokens).tolist() == pytest.approx(case["mean_of_softmax"], abs=1e-9)


@pytest.mark.parametrize("case", GOLDEN["losses"])
def test_loss_terms_agree_with_the_official_ones(case: dict[str, Any]) -> None:
    model = build(ASMILQuery, GOLDEN, case)
    objective = model.make_objective(temperature=case["temperature"])
    assert isinstance(objective, ASMILQueryObjective)
    twin = build(ASMILQuery, GOLDEN, case)
    twin.load_state_dict(filled(twin, prefix="anchor.", scaled=case.get("scaled")))
    objective.anchor.load_state_dict(
        torch.nn.Sequential(twin.projection, twin.branches).state_dict()
    )
    objective(backbones.pad([features(case["n_tiles"], model.d_in)], [case["label"]]))
    assert objective.terms["bag"] == pytest.approx(case["slide_ce"], abs=1e-9)
    assert objective.terms["anchor"] == pytest.approx(case["anchor"], abs=1e-9)


@pytest.mark.parametrize("case", GOLDEN["dropping"])
def test_withholding_summaries_agrees_with_the_official_model(case: dict[str, Any]) -> None:
    model = build(ASMILQuery, GOLDEN, case)
    assert isinstance(model, ASMILQuery)
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


def test_withholding_every_summary_is_refused() -> None:
    with pytest.raises(FociError, match="n_drop: 2 of 2 queries; at least one has to remain"):
        ASMILQuery(6, 2, d=8, heads=2, branches=2).make_objective(n_drop=2)
