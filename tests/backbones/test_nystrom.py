"""Nyström attention against loops, against exact attention, and bag by bag."""

import math

import pytest
import torch
from torch import Tensor

from foci.backbones.transformer import (
    NystromAttention,
    pinv_times,
)


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def attention(aligned: bool = True) -> NystromAttention:
    torch.manual_seed(0)
    block = NystromAttention(d=6, heads=2, head_width=3, landmarks=4, aligned=aligned)
    return block.double().eval()


def pinv_loop(a: Tensor) -> Tensor:
    """All heads ``[H, m, m]`` of one bag, with the common starting scale."""
    scale = max(h.abs().sum(1).max().item() for h in a) * max(
        h.abs().sum(0).max().item() for h in a
    )
    eye = torch.eye(a.shape[-1], dtype=a.dtype)
    inverses = []
    for head in a:
        z = head.T / scale
        for _ in range(6):
            az = head @ z
            z = 0.25 * z @ (13 * eye - 15 * az + 7 * az @ az - az @ az @ az)
        inverses.append(z)
    return torch.stack(inverses)


def slow_attention(block: NystromAttention, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """One bag ``[n, d]``, head by head: mixed values ``[padded, H * w]``, matrices ``[H, ...]``."""
    m, w = block.landmarks, block.head_width
    n = math.ceil(len(tokens) / m) * m
    padded = torch.zeros(n, tokens.shape[1], dtype=tokens.dtype)
    padded[n - len(tokens) :] = tokens
    qkv = padded @ block.qkv.weight.T
    factors, values = [], []
    for h in range(block.heads):
        at = [part * block.heads * w + h * w for part in range(3)]
        q, k, v = (qkv[:, a : a + w] for a in at)
        q = q / math.sqrt(w)
        ql = torch.stack([q[s : s + n // m].mean(0) for s in range(0, n, n // m)])
        kl = torch.stack([k[s : s + n // m].mean(0) for s in range(0, n, n // m)])
        factors.append([torch.softmax(s, 1) for s in (q @ kl.T, ql @ kl.T, ql @ k.T)])
        values.append(v)
    inverses = pinv_loop(torch.stack([f[1] for f in factors]))
    matrices = torch.stack([f[0] @ z @ f[2] for f, z in zip(factors, inverses, strict=True)])
    mixed = []
    for h, (matrix, v) in enumerate(zip(matrices, values, strict=True)):
        taps = block.residual.weight[h, 0, :, 0]
        conv = torch.zeros_like(v)
        for i in range(n):
            for t in range(33):
                if 0 <= i + t - 16 < n:
                    conv[i] += taps[t] * v[i + t - 16]
        mixed.append(matrix @ v + conv)
    return torch.cat(mixed, dim=1), matrices


@pytest.mark.parametrize("n", [*range(1, 14), 23])
@pytest.mark.parametrize("aligned", [True, False])
def test_attention_equals_loops(n: int, aligned: bool) -> None:
    block, tokens = attention(aligned), random(n, 6)
    mixed, _ = slow_attention(block, tokens)
    rows = mixed[len(mixed) - n :] if aligned else mixed[:n]
    torch.testing.assert_close(block(tokens[None])[0], block.output(rows), rtol=0, atol=1e-10)
    first = block(tokens[None], rows=1)[0]
    torch.testing.assert_close(first, block.output(rows[:1]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("n", [2, 4, 23])
def test_cls_row_is_the_first_real_row_of_the_attention_matrix(n: int, aligned: bool) -> None:
    block, tokens = attention(aligned), random(n, 6)
    _, matrices = slow_attention(block, tokens)
    row = block.cls_row(tokens[None])[0]
    torch.testing.assert_close(row, matrices[:, -n, -n:], rtol=0, atol=1e-10)


def test_the_product_with_the_pseudo_inverse_equals_the_pseudo_inverse_first() -> None:
    a, values = torch.softmax(2 * random(3, 2, 9, 9), -1), random(3, 2, 9, 4, seed=1)
    scale = a.sum(-2).amax((-2, -1))[..., None, None, None]
    want = torch.stack([pinv_loop(one) for one in a]) @ values
    torch.testing.assert_close(pinv_times(a, scale, values), want, rtol=0, atol=1e-10)
