"""TransMIL: the paper's, a set of tiles, and the official one, against the published code."""

import pytest
import torch
from torch import Tensor

from foci.backbones.models.transmil import TransMIL, TransMILNystrom
from foci.backbones.transformer import NystromLayer, squared
from foci.reveal import Revealer
from tests.backbones.golden_weights import features, golden, published
from tests.backbones.test_transformer import torch_twin


def model(dtype: torch.dtype = torch.float64, **widths: object) -> TransMIL:
    torch.manual_seed(0)
    sizes = {"d": 8, "heads": 2, "depth": 3, "hidden": 16, "head_hidden": 4}
    return TransMIL(6, 3, **{**sizes, "projection_bias": False, **widths}).to(dtype).eval()


def bag(n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(n, 6, generator=generator, dtype=dtype)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_model_equals_torchs_encoder_written_out(n: int) -> None:
    ours, x = model(), bag(n)
    hidden = torch.cat([ours.cls[None], torch.relu(x @ ours.projection[0].weight.T)])
    for layer in ours.layers:
        hidden = torch_twin(layer, "gelu")(hidden[None])[0]
    normed = ours.norm(hidden)
    logits = ours.head[2](torch.relu(ours.head[0](normed[0])))

    tokens = ours.embed(x)
    torch.testing.assert_close(ours(x), logits, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.scores(tokens), normed[1:] @ normed[0], rtol=0, atol=1e-12)
    before = model(proxy="before_norm").scores(tokens)
    torch.testing.assert_close(before, hidden[1:] @ hidden[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("gate", [[0.2, 0.9, 0.5, 1.0], [0.0, 1.0, 0.0, 1.0]])
def test_gate_gradient_equals_finite_differences(gate: list[float]) -> None:
    ours = model(depth=2)
    tokens = ours.embed(bag(4))[None]
    mask = torch.tensor([[True, True, True, False]])
    values = torch.tensor([gate], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda g: ours.aggregate(tokens, gate=g), values)
    assert torch.autograd.gradcheck(lambda g: ours.aggregate(tokens, mask, g), values)


def test_gradients_stay_finite_when_a_gated_out_tile_would_dominate() -> None:
    ours = model(torch.float32)
    with torch.no_grad():
        for layer in ours.layers:
            layer.query.weight *= 100
            layer.key_value.weight *= 100
    tokens = ours.embed(bag(5, dtype=torch.float32))[None].detach().requires_grad_()
    gate = torch.tensor([[0.0, 1.0, 0.0, 1.0, 0.0]], requires_grad=True)
    ours.aggregate(tokens, gate=gate).sum().backward()
    assert torch.isfinite(gate.grad).all()
    assert torch.isfinite(tokens.grad).all()


GOLDEN = golden("transmil")


@pytest.mark.parametrize("version", ["0.0.9", "0.0.11"])
def test_logits_and_proxy_equal_the_published_code(version: str) -> None:
    official = published(GOLDEN["keys"], aligned=version != "0.0.9")
    cases = [case for case in GOLDEN["cases"] if case["nystrom"] == version]
    assert len(cases) == {"0.0.9": 2, "0.0.11": 3}[version]
    assert any("scores" in case for case in cases)
    with torch.no_grad():
        for case in cases:
            n = case["n_tiles"]
            tokens = official.embed(features(n, 1024))
            logits = official.aggregate(tokens[None])[0]
            assert logits.tolist() == pytest.approx(case["logits"], abs=1e-9), n
            if "scores" in case:
                scores = official.scores(tokens)
                assert scores.shape == (n,)
                assert scores[:10].tolist() == pytest.approx(case["scores"], abs=1e-8), n


def plain_attention(layer: NystromLayer, tokens: Tensor) -> Tensor:
    """One bag ``[n, d]``: every zero token, landmark and row is computed."""
    block = layer.attention
    m, (n, d) = block.landmarks, tokens.shape
    padded = torch.cat([tokens.new_zeros(-n % m, d), layer.norm(tokens)])
    q, k, v = block.qkv(padded).view(len(padded), 3, block.heads, -1).permute(1, 2, 0, 3)
    q = q * block.head_width**-0.5
    q_means, k_means = (x.unflatten(1, (m, -1)).mean(dim=2) for x in (q, k))
    s1, s2, s3 = (
        torch.softmax(a @ b.transpose(1, 2), dim=-1)
        for a, b in ((q, k_means), (q_means, k_means), (q_means, k))
    )
    z, one = s2.transpose(1, 2) / (s2.sum(-1).max() * s2.sum(-2).max()), torch.eye(m)
    for _ in range(6):
        az = s2 @ z
        z = 0.25 * z @ (13 * one - az @ (15 * one - az @ (7 * one - az)))
    mixed = s1 @ z @ (s3 @ v) + block.residual(v[None])[0]
    rows: Tensor = block.output(mixed.transpose(0, 1).flatten(1))[len(padded) - n :]
    return tokens + rows


def test_every_subset_of_1_to_300_tiles_equals_the_plain_forward_pass() -> None:
    """Engine and shortcuts, with fewer tiles than landmarks and with many more."""
    torch.manual_seed(0)
    model = TransMILNystrom(6, 3, d=64, heads=4).eval().requires_grad_(False)
    x = bag(300, dtype=torch.float32)
    order = torch.randperm(300, generator=torch.Generator().manual_seed(1))
    revealer = Revealer(model, recheck=())
    found = revealer.open(x).curve(order, range(1, 301))
    for k in range(1, 301):
        tokens = squared(model.projection(x[order[:k].sort().values])[None])[0]
        hidden = plain_attention(model.layer1, torch.cat([model.cls[0], tokens]))
        placed = model.position(hidden[None, 1:])[0]
        hidden = plain_attention(model.layer2, torch.cat([hidden[:1], placed]))
        wanted = torch.softmax(model.head(model.norm(hidden[0])).double(), dim=-1)
        torch.testing.assert_close(found[k - 1], wanted, rtol=0, atol=1e-6)
