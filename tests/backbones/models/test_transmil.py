"""The paper's TransMIL: a set of tiles, masks and gates that remove, and its proxy."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from foci.backbones import Batch, create
from foci.backbones.models.transmil import TransMIL
from foci.errors import FociError


def model(dtype: torch.dtype = torch.float64, **widths: object) -> TransMIL:
    torch.manual_seed(0)
    sizes = {"d": 8, "heads": 2, "depth": 3, "hidden": 16, "head_hidden": 4}
    return TransMIL(6, 3, **{**sizes, "projection_bias": False, **widths}).to(dtype).eval()


def bag(n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(n, 6, generator=generator, dtype=dtype)


def test_paper_preset_has_the_papers_parameter_count() -> None:
    def count(**widths: object) -> int:
        paper = create("transmil", d_in=1536, n_classes=2, **widths)
        return sum(p.numel() for p in paper.parameters())

    assert count() == 13_529_346
    assert count(projection_bias=True) == 13_529_858


@pytest.mark.parametrize("n", [1, 2, 7])
def test_model_equals_torchs_encoder_written_out(n: int) -> None:
    ours, x = model(), bag(n)
    hidden = torch.cat([ours.cls[None], torch.relu(x @ ours.projection[0].weight.T)])
    for layer in ours.layers:
        normed = layer.attention_norm(hidden)
        mixed, _ = nn.functional.multi_head_attention_forward(
            *(normed.unsqueeze(1),) * 3,
            embed_dim_to_check=8,
            num_heads=2,
            in_proj_weight=torch.cat([layer.query.weight, layer.key_value.weight]),
            in_proj_bias=torch.cat([layer.query.bias, layer.key_value.bias]),
            bias_k=None,
            bias_v=None,
            add_zero_attn=False,
            dropout_p=0.0,
            out_proj_weight=layer.output.weight,
            out_proj_bias=layer.output.bias,
        )
        hidden = hidden + mixed.squeeze(1)
        wide = nn.functional.gelu(layer.widen(layer.feed_forward_norm(hidden)))
        hidden = hidden + layer.narrow(wide)
    normed = ours.norm(hidden)
    logits = ours.head[2](torch.relu(ours.head[0](normed[0])))

    tokens = ours.embed(x)
    torch.testing.assert_close(ours(x), logits, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.scores(tokens), normed[1:] @ normed[0], rtol=0, atol=1e-12)
    before = model(proxy="before_norm").scores(tokens)
    torch.testing.assert_close(before, hidden[1:] @ hidden[0], rtol=0, atol=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 9))
def test_masked_and_hard_gated_tiles_are_removed(seed: int, n: int) -> None:
    ours, generator = model(), torch.Generator().manual_seed(seed)
    tokens = ours.embed(bag(n, seed))
    keep = torch.rand(n, generator=generator) < 0.5
    keep[torch.randint(n, (), generator=generator)] = True

    removed = ours.aggregate(tokens[keep][None])

    masked = ours.aggregate(tokens[None], keep[None])
    gated = ours.aggregate(tokens[None], gate=keep[None].double())
    torch.testing.assert_close(masked, removed, rtol=0, atol=1e-12)
    torch.testing.assert_close(gated, removed, rtol=0, atol=1e-12)


def test_hard_gate_is_removal_in_single_precision_too() -> None:
    ours = model(torch.float32)
    tokens = ours.embed(bag(40, dtype=torch.float32))
    keep = torch.arange(40) % 3 == 0
    gated = ours.aggregate(tokens[None], gate=keep[None].float())
    torch.testing.assert_close(gated, ours.aggregate(tokens[keep][None]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("fill", [0.0, 1e4])
def test_padding_is_inert_whatever_it_contains(fill: float) -> None:
    ours = model()
    long, short = ours.embed(bag(6)), ours.embed(bag(2, seed=1))
    padded = torch.full((2, 6, 8), fill, dtype=torch.float64)
    padded[0], padded[1, :2] = long, short
    mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    want = torch.cat([ours.aggregate(long[None]), ours.aggregate(short[None])])

    gate = torch.ones(2, 6, dtype=torch.float64)
    torch.testing.assert_close(ours.aggregate(padded, mask), want, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.aggregate(padded, mask, gate), want, rtol=0, atol=1e-12)


def test_order_of_tiles_does_not_matter() -> None:
    ours, x = model(), bag(9)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(ours(x[order]), ours(x), rtol=0, atol=1e-12)
    scores = ours.scores(ours.embed(x))
    torch.testing.assert_close(ours.scores(ours.embed(x[order])), scores[order])


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


def test_bias_free_projection_makes_gating_a_feature_gating_its_token() -> None:
    x, g = bag(5), torch.rand(5, 1, dtype=torch.float64)
    plain, biased = model(), model(projection_bias=True)
    torch.testing.assert_close(plain.embed(g * x), g * plain.embed(x))
    assert plain.capabilities.homogeneous
    assert not torch.allclose(biased.embed(g * x), g * biased.embed(x))
    assert not biased.capabilities.homogeneous


def test_objective_is_cross_entropy() -> None:
    ours, x = model(), bag(4)
    batch = Batch(x[None], torch.ones(1, 4, dtype=torch.bool), torch.tensor([2]))
    assert ours.objective(batch).item() == pytest.approx(-ours.predict(x)[2].log().item())


def test_config_rebuilds_the_same_shapes() -> None:
    ours = model(proxy="before_norm", activation="relu")
    twin = TransMIL(**ours.config).double().eval()
    twin.load_state_dict(ours.state_dict())
    tokens = ours.embed(bag(3))
    torch.testing.assert_close(twin.scores(tokens), ours.scores(tokens))


@pytest.mark.parametrize(
    ("widths", "message"),
    [
        ({"heads": 3}, "transmil: d=8 is not a multiple of heads=3; change one"),
        ({"proxy": "cls"}, "transmil: has no proxy 'cls'; use after_norm or before_norm"),
        ({"activation": "swish"}, "transmil: has no activation 'swish'; use gelu or relu"),
    ],
)
def test_impossible_widths_are_refused(widths: dict[str, object], message: str) -> None:
    with pytest.raises(FociError) as error:
        model(**widths)
    assert str(error.value) == message
