"""Softmax pooling against forwarding the subset alone."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foci.backbones import attention
from foci.backbones.attention import pool, prefix_pool, softmax_weights


def subset_pool(logits: torch.Tensor, values: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return pool(softmax_weights(logits[keep]), values[keep])


@pytest.mark.parametrize("value_rows", [1, 3])
def test_blocks_of_running_sums_change_no_bit(
    value_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(100, 3, generator=generator, dtype=torch.float64)
    values = torch.randn(100, value_rows, 5, generator=generator, dtype=torch.float64)
    ks = torch.tensor([100, 99, 64, 17, 16, 15, 1])
    weights = torch.exp(logits - logits.amax(dim=0))
    sums = torch.cumsum(weights.unsqueeze(-1) * values, dim=0)
    want = sums[ks - 1] / torch.cumsum(weights, dim=0)[ks - 1].unsqueeze(-1)
    for numbers in (1, 15, 16 * 15, 99 * 15, 100 * 15):
        monkeypatch.setattr(attention, "_SUMMED_AT_ONCE", numbers)
        assert torch.equal(prefix_pool(logits, values, ks), want)


@given(st.integers(0, 10_000), st.integers(1, 20))
def test_masked_and_hard_gated_pooling_equal_removal(seed: int, n: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 100 * torch.randn(n, 2, generator=generator, dtype=torch.float64)
    values = torch.randn(n, 1, 4, generator=generator, dtype=torch.float64)
    keep = torch.rand(n, generator=generator) < 0.5
    keep[torch.randint(n, (), generator=generator)] = True
    want = subset_pool(logits, values, keep)

    masked = pool(softmax_weights(logits, mask=keep), values)
    gated = pool(softmax_weights(logits, gate=keep.double()), values)

    torch.testing.assert_close(masked, want, rtol=0, atol=1e-12)
    torch.testing.assert_close(gated, want, rtol=0, atol=1e-12)


def test_gate_gradient_is_exact_and_finite_at_zero() -> None:
    logits = torch.tensor([[0.3], [-0.2], [5.0]], dtype=torch.float64)
    values = torch.tensor([[[1.0]], [[2.0]], [[4.0]]], dtype=torch.float64)
    gate = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64, requires_grad=True)

    pool(softmax_weights(logits, gate=gate), values).sum().backward()

    weight = logits.exp().flatten()
    mass = weight[:2].sum()
    mean = (weight[:2] * values[:2].flatten()).sum() / mass
    want = weight * (values.flatten() - mean) / mass
    torch.testing.assert_close(gate.grad, want)


def test_gating_everything_out_gives_zero_not_nan() -> None:
    weights = softmax_weights(torch.randn(4, 2), gate=torch.zeros(4))
    assert weights.abs().sum() == 0


@pytest.mark.parametrize("shift", [0.0, -30.0, 800.0])
def test_softmax_plus_one_is_the_sum_with_one_more_in_the_denominator(shift: float) -> None:
    torch.manual_seed(0)
    logits = torch.randn(7, 2, dtype=torch.float64) + shift
    values = torch.randn(7, 2, 3, dtype=torch.float64)
    gate = torch.tensor([1.0, 0.0, 0.5, 1.0, 0.2, 1.0, 1.0], dtype=torch.float64)
    largest = max(0.0, float(logits.max()))
    raw, one = torch.exp(logits - largest), math.exp(-largest)
    expected = raw / (one + raw.sum(dim=0))
    torch.testing.assert_close(softmax_weights(logits, plus_one=True), expected)
    gated = gate[:, None] * raw
    torch.testing.assert_close(
        softmax_weights(logits, gate=gate, plus_one=True), gated / (one + gated.sum(dim=0))
    )
    keep = gate > 0.3
    kept = torch.where(keep[:, None], raw, 0.0)
    torch.testing.assert_close(
        softmax_weights(logits, keep, plus_one=True), kept / (one + kept.sum(dim=0))
    )
    order, ks = torch.tensor([3, 1, 0, 6, 2, 5, 4]), torch.tensor([1, 4, 7])
    found = prefix_pool(logits, values, ks, order, plus_one=True)
    for row, k in zip(found, ks.tolist(), strict=True):
        e, v = raw[order[:k]], values[order[:k]]
        torch.testing.assert_close(
            row, (e[..., None] * v).sum(dim=0) / (one + e.sum(dim=0))[:, None]
        )
