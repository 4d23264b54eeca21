"""AttriMIL: counts, closed form, ranking, and the published implementation."""

from decimal import Context, Decimal
from typing import Any

import pytest
import torch
from torch import Tensor

from foci.backbones import create
from foci.backbones.models.attrimil import AttriMIL
from tests.backbones import golden_attrimil
from tests.backbones.golden_weights import features


@pytest.mark.parametrize(
    ("preset", "d_in", "count"),
    [
        ("paper", 1536, 1_707_014),
        ("official", 1536, 7_087_878),
        ("official", 512, 789_766),
        ("aligned", 1536, 1_576_710),
    ],
)
def test_parameter_counts(preset: str, d_in: int, count: int) -> None:
    model = create("attrimil", preset, d_in=d_in, n_classes=2)
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize("preset", ["paper", "official", "aligned"])
def test_config_rebuilds_the_same_shapes(preset: str) -> None:
    model = create("attrimil", preset, d_in=12, n_classes=3)
    again = type(model)(**model.config)
    again.load_state_dict(model.state_dict())
    assert again.config == model.config
    assert again.d_token == (12 if preset == "official" else 512)


@pytest.mark.parametrize("case", golden_attrimil.GOLDEN["cases"])
def test_published_logits_and_ranking(case: dict[str, Any]) -> None:
    model = golden_attrimil.model(case["n_classes"])
    x = features(case["n_tiles"], golden_attrimil.D_IN)
    published = torch.tensor(case["attributes"], dtype=torch.float64)

    with torch.no_grad():
        tokens = model.embed(x)
        attributes = (model.values(tokens).squeeze(-1) * model.attend(tokens).exp()).T
        logits, scores = model(x), model.scores(tokens)

    assert logits.tolist() == pytest.approx(case["logits"], abs=1e-8)
    torch.testing.assert_close(attributes, published, rtol=0, atol=1e-8)
    assert scores.argsort().tolist() == published.amax(dim=0).argsort().tolist()


@pytest.mark.parametrize("spread", [1.0, 400.0])
@pytest.mark.parametrize("preset", ["paper", "official"])
@torch.no_grad()
def test_prefixes_equal_forwarding_the_subset(preset: str, spread: float) -> None:
    torch.manual_seed(0)
    model = create("attrimil", preset, d_in=12, n_classes=3, d=16, hidden=8, scorer_hidden=8)
    model = model.double()
    assert isinstance(model, AttriMIL)
    x = torch.randn(120, 12, dtype=torch.float64)
    spread_attention(model, x, spread)
    model.beta.copy_(torch.tensor([1.0, -2.0, 3.0]))
    ks = torch.tensor([1, 2, 3, 50, 119, 120])

    got = model.prefixes(model.embed(x), ks)

    want = torch.stack([model(x[:k]) for k in ks.tolist()])
    torch.testing.assert_close(got, want, rtol=0, atol=1e-9)


@torch.no_grad()
def test_beta_is_added_to_the_weighted_scores() -> None:
    torch.manual_seed(0)
    model = AttriMIL(6, 2).double()
    x = torch.randn(5, 6, dtype=torch.float64)
    h = model.embed(x)
    size = model.attend(h).exp()
    want = (model.values(h).squeeze(-1) * size).sum(0) / size.sum(0)
    model.beta.copy_(torch.tensor([0.5, -0.25]))
    torch.testing.assert_close(model(x), want + model.beta, rtol=0, atol=1e-12)


@torch.no_grad()
def spread_attention(model: AttriMIL, x: Tensor, spread: float) -> None:
    scale = spread / model.attend(model.embed(x)).std()
    for net in model.attention:
        net.w.weight *= scale
        net.w.bias *= scale


def exact_attributes(model: AttriMIL, tokens: Tensor) -> list[Decimal]:
    """Largest s e^a of every tile with fifty digits and no bound on the exponent."""
    fifty = Context(prec=50, Emax=10**9, Emin=-(10**9))
    scores, logits = model.values(tokens).squeeze(-1).tolist(), model.attend(tokens).tolist()
    return [
        max(fifty.multiply(Decimal(s), fifty.exp(Decimal(a))) for s, a in zip(*rows, strict=True))
        for rows in zip(scores, logits, strict=True)
    ]


@pytest.mark.parametrize("spread", [0.1, 1.0, 400.0, 4000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@torch.no_grad()
def test_ranking_is_exact_far_beyond_what_a_float_can_hold(
    spread: float, dtype: torch.dtype
) -> None:
    torch.manual_seed(2)
    model = AttriMIL(12, 3).to(dtype)
    x = torch.randn(400, 12, dtype=dtype)
    spread_attention(model, x, spread)
    tokens = model.embed(x)
    exact = exact_attributes(model, tokens)

    scores = model.scores(tokens)

    assert scores.dtype == torch.float64
    assert torch.isfinite(scores).all()
    want = sorted(range(len(exact)), key=exact.__getitem__)
    assert scores.argsort(stable=True).tolist() == want
    assert (scores > 0).tolist() == [a > 0 for a in exact]


@torch.no_grad()
def test_scores_of_zero_and_one_stay_put() -> None:
    model = AttriMIL(2, 1).double()
    for parameter in model.parameters():
        parameter.zero_()
    model.scorers[0].weight.copy_(torch.tensor([[1.0, 0.0]]))
    x = torch.tensor([[0.0, 5.0], [1.0, 5.0], [-1.0, 5.0]], dtype=torch.float64)
    assert model.scores(model.embed(x)).tolist() == [0.0, 1.0, -1.0]
