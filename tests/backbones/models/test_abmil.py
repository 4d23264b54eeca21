"""ABMIL against the authors' code, and its closed form against forwarding every prefix."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from foci.backbones.models.abmil import ABMIL
from foci.testing import check_backbone
from tests.backbones.golden_weights import features, golden, linear, published

GOLDEN = golden("abmil")


def official(gated: bool) -> ABMIL:
    """One sigmoid output u is the two logits [0, u]."""
    first, last = ("attention_V.0", "attention_w") if gated else ("attention.0", "attention.2")
    keys = linear(first, 128, 500) | linear(last, 1, 128) | linear("classifier.0", 1, 500)
    model: ABMIL = published(keys | linear("attention_U.0", 128, 500) if gated else keys)
    return model


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda c: f"{c['gated']}-{c['n_tiles']}")
def test_logits_scores_and_loss_equal_the_published_code(case: dict[str, Any]) -> None:
    model = official(case["gated"])
    tokens = features(case["n_tiles"], 500)

    logits = model.aggregate(tokens[None])[0]

    assert logits.tolist() == pytest.approx(case["logits"], abs=1e-10)
    assert model.scores(tokens).tolist() == pytest.approx(case["scores"], abs=1e-10)
    for label, loss in enumerate(case["losses"]):
        assert F.cross_entropy(logits, torch.tensor(label)).item() == pytest.approx(loss, abs=1e-10)


def test_without_projection_features_are_pooled_as_they_are() -> None:
    torch.manual_seed(0)
    model = ABMIL(6, 3, d=None, hidden=4).double()
    x = torch.randn(5, 6, dtype=torch.float64)
    assert (model.d_token, model.capabilities.homogeneous) == (6, True)
    weights = torch.softmax(model.attention(x), dim=0)
    want = model.head((weights * x).sum(dim=0))
    torch.testing.assert_close(model(x), want, rtol=0, atol=1e-12)
    assert type(model)(**model.config).state_dict().keys() == model.state_dict().keys()


def test_a_deeper_projection_and_a_residual_adaptor_by_hand() -> None:
    torch.manual_seed(0)
    model = ABMIL(
        5, 2, d=4, hidden=3, projection_activation="gelu", projection_layers=2, adaptor_hidden=2
    ).double()
    x = torch.randn(6, 5, dtype=torch.float64)
    state = model.state_dict()

    def affine(name: str, h: torch.Tensor) -> torch.Tensor:
        return h @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def gelu(h: torch.Tensor) -> torch.Tensor:
        return h * 0.5 * (1 + torch.erf(h / 2**0.5))

    h = gelu(affine("projection.3", gelu(affine("projection.0", x))))
    h = h + affine("adaptor.2", affine("adaptor.0", h).clamp_min(0))
    a = affine("attention.w", affine("attention.V", h).tanh() * affine("attention.U", h).sigmoid())
    logits = affine("head", torch.softmax(a[:, 0], dim=0) @ h)
    torch.testing.assert_close(model(x), logits)
    assert not model.capabilities.homogeneous


def test_a_head_of_several_layers_keeps_its_closed_form_and_no_proofs() -> None:
    torch.manual_seed(0)
    model = ABMIL(12, 2, d=8, hidden=6, head_hidden=16, head_layers=2)
    assert model.capabilities.structure == "none"
    check_backbone(model)
