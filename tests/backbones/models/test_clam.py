"""CLAM-SB: counts, closed form, native score, and the published implementation."""

from typing import Any

import numpy as np
import pytest
import torch

from foci.backbones import create
from foci.backbones.models.clam import CLAM, CLAMSB
from tests.backbones import golden_clam
from tests.backbones.golden_weights import features


@pytest.mark.parametrize(
    ("preset", "d_in", "count"),
    [
        ("paper", 1536, 493_319),
        ("official", 1536, 1_052_935),
        ("official", 1024, 790_791),
        ("big", 1536, 1_184_391),
    ],
)
def test_parameter_counts(preset: str, d_in: int, count: int) -> None:
    model = create("clam-sb", preset, d_in=d_in, n_classes=2)
    assert sum(p.numel() for p in model.parameters()) == count


def test_config_rebuilds_the_same_shapes() -> None:
    model = create("clam-sb", "paper", d_in=12, n_classes=3, gated=False, dropout=0.1)
    again = type(model)(**model.config)
    again.load_state_dict(model.state_dict())
    assert again.config == model.config


@pytest.mark.parametrize("case", golden_clam.golden("clam_sb")["cases"])
def test_published_logits_and_attention(case: dict[str, Any]) -> None:
    model = golden_clam.model(CLAMSB, **case["variant"])
    x = features(case["n_tiles"], golden_clam.D_IN)

    with torch.no_grad():
        logits, scores = model(x), model.scores(model.embed(x))

    assert logits.tolist() == pytest.approx(case["logits"], abs=1e-8)
    assert scores.tolist() == pytest.approx(case["attention"], abs=1e-8)


@pytest.mark.parametrize("spread", [1.0, 400.0])
@pytest.mark.parametrize("preset", ["paper", "official"])
@torch.no_grad()
def test_prefixes_equal_forwarding_the_subset(preset: str, spread: float) -> None:
    torch.manual_seed(0)
    model = create("clam-sb", preset, d_in=12, n_classes=3).double().eval()
    assert isinstance(model, CLAM)
    x = torch.randn(120, 12, dtype=torch.float64)
    model.attention.w.weight *= spread / model.attend(model.embed(x)).std()
    ks = torch.tensor([1, 2, 3, 50, 119, 120])

    got = model.prefixes(model.embed(x), ks)

    want = torch.stack([model(x[:k]) for k in ks.tolist()])
    torch.testing.assert_close(got, want, rtol=0, atol=1e-9)


@torch.no_grad()
def test_native_score_is_the_attention_before_the_softmax() -> None:
    torch.manual_seed(1)
    model = CLAMSB(5, 2, d=4, hidden=3).double()
    x = torch.randn(6, 5, dtype=torch.float64)
    p = {name: tensor.numpy() for name, tensor in model.state_dict().items()}

    h = np.maximum(x.numpy() @ p["projection.0.weight"].T + p["projection.0.bias"], 0)
    tanh = np.tanh(h @ p["attention.V.weight"].T + p["attention.V.bias"])
    gate = 1 / (1 + np.exp(-(h @ p["attention.U.weight"].T + p["attention.U.bias"])))
    want = (tanh * gate) @ p["attention.w.weight"][0] + p["attention.w.bias"][0]

    np.testing.assert_allclose(model.scores(model.embed(x)), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("dropout", "attention"), [(0.0, 0.0), (0.1, 0.25), (0.25, 0.25)])
def test_attention_dropout_is_a_quarter_whenever_there_is_dropout(
    dropout: float, attention: float
) -> None:
    model = CLAMSB(5, 2, d=4, hidden=3, dropout=dropout)
    assert model.attention.dropout.p == attention
    assert model.projection[2].p == dropout


@torch.no_grad()
def test_instance_classifiers_play_no_part_in_a_prediction() -> None:
    model = CLAMSB(5, 2, d=4, hidden=3)
    x = torch.randn(6, 5)
    before = model(x)
    for classifier in model.instance_classifiers:
        torch.nn.init.constant_(classifier.weight, 9.0)
    assert torch.equal(model(x), before)


@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
def test_homogeneity_is_declared_where_it_holds(bias: bool) -> None:
    model = CLAMSB(5, 2, d=4, hidden=3, projection_bias=bias).double()
    torch.nn.init.ones_(model.projection[0].weight)
    x = torch.rand(6, 5, dtype=torch.float64)
    holds = torch.allclose(model.embed(0.3 * x), 0.3 * model.embed(x), rtol=0, atol=1e-12)
    assert model.capabilities.homogeneous is holds is (not bias)
