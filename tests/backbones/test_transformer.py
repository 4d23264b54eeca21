"""The encoder layer against torch and the gated formula; the position encoding against loops."""

import math

import pytest
import torch
from torch import Tensor, nn

from foci.backbones.transformer import PPEG, CroppedPPEG, EncoderLayer, squared


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def layer(d: int = 8, heads: int = 2, activation: str = "gelu") -> EncoderLayer:
    torch.manual_seed(0)
    return EncoderLayer(d, heads, hidden=12, activation=activation).double().eval()


def torch_twin(ours: EncoderLayer, activation: str) -> nn.TransformerEncoderLayer:
    d, hidden = ours.output.out_features, ours.widen.out_features
    twin = nn.TransformerEncoderLayer(
        d, ours.heads, hidden, 0.0, activation, batch_first=True, norm_first=True
    )
    weights = ours.state_dict()
    renamed = {
        f"self_attn.in_proj_{kind}": torch.cat(
            [weights[f"query.{kind}"], weights[f"key_value.{kind}"]]
        )
        for kind in ("weight", "bias")
    }
    for theirs, mine in {
        "self_attn.out_proj": "output",
        "linear1": "widen",
        "linear2": "narrow",
        "norm1": "attention_norm",
        "norm2": "feed_forward_norm",
    }.items():
        for kind in ("weight", "bias"):
            renamed[f"{theirs}.{kind}"] = weights[f"{mine}.{kind}"]
    twin.load_state_dict(renamed)
    return twin.double().train()  # train mode keeps torch off its fused inference path


@pytest.mark.parametrize("activation", ["gelu", "relu"])
@pytest.mark.parametrize("masked", [False, True])
def test_layer_equals_torchs_own_pre_norm_layer(activation: str, masked: bool) -> None:
    ours = layer(activation=activation)
    tokens = random(2, 5, 8)
    mask = torch.tensor([[True] * 5, [True, False, True, True, False]]) if masked else None

    got = ours(tokens, mask)

    hidden = None if mask is None else ~mask
    want = torch_twin(ours, activation)(tokens, src_key_padding_mask=hidden)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_gated_attention_equals_the_formula_written_out() -> None:
    ours, tokens = layer(), random(1, 4, 8)
    gate = torch.tensor([[1.0, 0.3, 0.0, 0.8]], dtype=torch.float64)
    q, k, v = (part.detach() for part in ours.qkv(tokens))

    want = torch.zeros(4, 8, dtype=torch.float64)
    for h in range(2):
        for i in range(4):
            weights = [
                float(gate[0, j]) * math.exp(float(q[0, h, i] @ k[0, h, j]) / math.sqrt(4))
                for j in range(4)
            ]
            for j in range(4):
                want[i, 4 * h : 4 * h + 4] += weights[j] / sum(weights) * v[0, h, j]

    got = ours.attend(q, k, v, gate=gate)[0]
    torch.testing.assert_close(got, ours.output(want), rtol=0, atol=1e-12)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("gated", [False, True])
def test_the_first_token_alone_is_that_of_the_whole_layer(masked: bool, gated: bool) -> None:
    ours = layer()
    mask = torch.tensor([[True] * 5, [True, False, True, True, False]]) if masked else None
    gate = torch.rand(2, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gate[:, 3] = 0.0
    answers = []
    for function in (ours.first, lambda *given: ours(*given)[:, 0]):
        tokens, g = random(2, 5, 8).requires_grad_(), gate.clone().requires_grad_()
        got = function(tokens, mask, g if gated else None)
        inputs = [tokens, g] if gated else [tokens]
        answers.append((got, *torch.autograd.grad(got.square().sum(), inputs)))
    for got, want in zip(*answers, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


def convolved(block: PPEG, grid: Tensor) -> Tensor:
    """Grid ``[s, s, d]``: identity and three depth-wise convolutions, tap by tap."""
    side = len(grid)
    out = grid.clone()
    for conv, reach in ((block.conv7, 3), (block.conv5, 2), (block.conv3, 1)):
        out = out + conv.bias
        for y in range(side):
            for x in range(side):
                for dy in range(-reach, reach + 1):
                    for dx in range(-reach, reach + 1):
                        if 0 <= y + dy < side and 0 <= x + dx < side:
                            taps = conv.weight[:, 0, dy + reach, dx + reach]
                            out[y, x] = out[y, x] + taps * grid[y + dy, x + dx]
    return out


@pytest.mark.parametrize(
    ("n", "want"),
    [
        (1, [0]),
        (2, [0, 1, 0, 1]),
        (3, [0, 1, 2, 0]),
        (4, [0, 1, 2, 3]),
        (5, [*range(5), *range(4)]),
    ],
)
def test_first_tiles_fill_the_square(n: int, want: list[int]) -> None:
    tiles = torch.arange(n, dtype=torch.float64).view(1, n, 1)
    assert squared(tiles).flatten().tolist() == want


def test_position_encoding_equals_loops() -> None:
    torch.manual_seed(0)
    block, tokens = PPEG(2).double(), random(1, 9, 2)
    want = convolved(block, tokens[0].view(3, 3, 2)).view(9, 2)
    torch.testing.assert_close(block(tokens)[0], want)


@pytest.mark.parametrize(("n", "side"), [(1, 7), (5, 7), (49, 7), (50, 8)])
def test_cropped_form_squares_then_fills_seven_by_seven_then_crops(n: int, side: int) -> None:
    torch.manual_seed(0)
    block, tokens = CroppedPPEG(2).double(), random(1, n, 2)
    sequence = squared(tokens)[0]
    grid = torch.zeros(side * side, 2, dtype=torch.float64)
    grid[: len(sequence)] = sequence
    want = convolved(block, grid.view(side, side, 2)).view(-1, 2)[:n]
    torch.testing.assert_close(block(tokens)[0], want)
