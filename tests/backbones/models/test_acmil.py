from typing import Any

import pytest
import torch

from foci import backbones
from foci.backbones.models.acmil import ACMIL
from tests.backbones.golden_branches import build, official, pooled, read
from tests.backbones.golden_weights import features

GOLDEN = read("acmil")


def test_parameter_counts() -> None:
    paper = backbones.create("acmil", d_in=1536, n_classes=2)
    assert sum(p.numel() for p in paper.parameters()) == 924_561
    own = backbones.create("acmil", "official", d_in=1536, n_classes=2)
    assert sum(p.numel() for p in own.parameters()) == 1_386_385


@pytest.mark.parametrize("variant", GOLDEN["variants"])
def test_every_official_tensor_has_a_counterpart(variant: str) -> None:
    model = build(ACMIL, GOLDEN, {"variant": variant})
    shapes = {official(name): list(t.shape) for name, t in model.state_dict().items()}
    assert shapes == GOLDEN["variants"][variant]["keys"]


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_agrees_with_the_official_model(case: dict[str, Any]) -> None:
    model = build(ACMIL, GOLDEN, case)
    soft = build(ACMIL, GOLDEN, case, score="softmax")
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


def test_the_mean_is_over_softmax_maps_not_over_logits() -> None:
    """Two branches, each sure of another tile: the slide sees both, not their compromise.

    Tokens 1, 0 and 0; rows (20, 0, 0) and (-20, 0, 0). Mean of maps: (1 + 0)/2 on the first tile.
    Softmax of the mean logits (0, 0, 0): 1/3.
    """
    model = ACMIL(1, 2, d=1, hidden=1, branches=2).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.projection[0].weight.fill_(1.0)
        model.attention.V.weight.fill_(1.0)
        gate = torch.tanh(torch.tensor(1.0, dtype=torch.float64)) * 0.5
        model.attention.w.weight.copy_(torch.tensor([[20.0], [-20.0]]) / gate)
        model.head.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        x = torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64)
        logits = model(x)
    assert logits.tolist() == pytest.approx([0.5, -0.5], abs=1e-8)
    assert abs(logits[0].item() - 1 / 3) > 0.1


def test_the_two_native_scores_can_rank_differently() -> None:
    case = next(case for case in GOLDEN["cases"] if "scaled" in case)
    by_logits = build(ACMIL, GOLDEN, case)
    by_map = build(ACMIL, GOLDEN, case, score="softmax")
    tokens = by_logits.embed(features(case["n_tiles"], by_logits.d_in))
    orders = [model.scores(tokens).argsort().tolist() for model in (by_logits, by_map)]
    assert orders[0] != orders[1]
    assert by_map.scores(tokens).sum().item() == pytest.approx(1.0)
