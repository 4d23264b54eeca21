from typing import Any

import pytest
import torch

from foci import backbones
from foci.backbones.models.acmil import ACMILMultiHead
from tests.backbones.golden_branches import build, official, pooled, read
from tests.backbones.golden_weights import features

GOLDEN = read("acmil_mha")


def test_parameter_count() -> None:
    """Projection, queries, K attentions of 4 d (d+1) + 2 d, the slide's half, 6 classifiers."""
    d = 512
    model = backbones.create("acmil", "mha", d_in=1024, n_classes=2)
    attention, readout = 4 * d * (d + 1) + 2 * d, 2 * d * (d + 1) + 2 * d
    want = 1024 * d + 5 * d + 5 * attention + readout + 6 * 2 * (d + 1)
    assert sum(p.numel() for p in model.parameters()) == want


@pytest.mark.parametrize("variant", GOLDEN["variants"])
def test_every_official_tensor_has_a_counterpart(variant: str) -> None:
    model = build(ACMILMultiHead, GOLDEN, {"variant": variant})
    shapes = {official(name): list(t.shape) for name, t in model.state_dict().items()}
    assert shapes == GOLDEN["variants"][variant]["keys"]


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_agrees_with_the_official_model(case: dict[str, Any]) -> None:
    model = build(ACMILMultiHead, GOLDEN, case)
    soft = build(ACMILMultiHead, GOLDEN, case, score="softmax")
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
