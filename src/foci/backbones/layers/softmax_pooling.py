r"""Softmax pooling of a set of tiles, of a gated set, and of every prefix of an ordered set.

All three compute, for attention logits :math:`a` and values :math:`v`,

.. math:: z = \sum_i w_i v_i, \qquad w_i = \frac{g_i e^{a_i}}{\sum_j g_j e^{a_j}}

over the tiles that are present. Shapes: logits ``[..., N, R]`` for R rows (branches, heads or
classes), values ``[..., N, 1 or R, dv]``, pooled ``[..., R, dv]``.
"""

from __future__ import annotations

import torch
from torch import Tensor

MAX_EXCESS = 30.0
"""Largest excess of a gated-out tile's logit over the kept ones. Its weight is 0, but its gradient
is proportional to exp(logit - max kept), which has to stay finite."""

_BLOCK = 64
"""Prefixes per block where each needs a softmax of its own."""


def softmax_weights(
    logits: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
) -> Tensor:
    """Softmax over the tiles with a mask and a gate, ``[..., N, R]``.

    A tile that is masked out or gated to 0 has weight 0.

    Args:
        logits: ``[..., N, R]``.
        mask: ``[..., N]`` bool, True where a tile is present.
        gate: ``[..., N]``, multiplies the unnormalised weight; differentiable at 0 too.

    >>> softmax_weights(torch.tensor([[0.0], [0.0], [9.0]]), torch.tensor([True, True, False]))
    tensor([[0.5000],
            [0.5000],
            [0.0000]])
    """
    if mask is not None:
        logits = logits.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    if gate is None:
        return torch.softmax(logits, dim=-2)
    gate = gate.unsqueeze(-1)
    kept = logits.masked_fill(gate <= 0, -torch.inf)
    peak = kept.amax(dim=-2, keepdim=True).detach()
    peak = peak.masked_fill(peak.isneginf(), 0.0)
    weights = gate * torch.exp((logits - peak).clamp(max=MAX_EXCESS))
    total = weights.sum(dim=-2, keepdim=True)
    return weights / total.clamp_min(torch.finfo(weights.dtype).tiny)


def pool(weights: Tensor, values: Tensor) -> Tensor:
    """Weighted sums ``[..., R, dv]`` of values ``[..., N, 1 or R, dv]``."""
    if values.shape[-2] == 1:
        return weights.transpose(-1, -2) @ values.squeeze(-2)
    return torch.einsum("...nr,...nrd->...rd", weights, values)


def prefix_pool(logits: Tensor, values: Tensor, ks: Tensor) -> Tensor:
    r"""Pooled values of the first k tiles for every k in ``ks``, in float64.

    .. math:: z(k) = \frac{\sum_{i \le k} e^{a_i - m_k} v_i}{\sum_{i \le k} e^{a_i - m_k}},
       \qquad m_k = \max_{i \le k} a_i

    In an arbitrary order the tile with the largest logit may come last. As long as it lies less
    than 600 above the first one, nothing underflows with one maximum for all prefixes, and running
    sums give every count at once; beyond that every count gets a softmax with its own maximum.

    Args:
        logits: ``[N, R]`` in reveal order.
        values: ``[N, 1 or R, dv]`` in reveal order.
        ks: ``[K]`` counts between 1 and N.

    Returns:
        ``[K, R, dv]`` in float64.

    >>> z = prefix_pool(torch.tensor([[0.0], [900.0]]), torch.tensor([[[1.0]], [[3.0]]]),
    ...                 torch.tensor([1, 2]))
    >>> z.flatten().tolist()
    [1.0, 3.0]
    """
    last = int(ks.max())
    logits, values = logits[:last].double(), values[:last].double()
    rise = (logits.amax(dim=0) - logits[0]).amax()
    return _running_sums(logits, values, ks) if rise < 600 else _triangular(logits, values, ks)


def _running_sums(logits: Tensor, values: Tensor, ks: Tensor) -> Tensor:
    weights = torch.exp(logits - logits.amax(dim=0))  # [N, R]
    sums = torch.cumsum(weights.unsqueeze(-1) * values, dim=0)  # [N, R, dv]
    totals = torch.cumsum(weights, dim=0)
    return sums[ks - 1] / totals[ks - 1].unsqueeze(-1)


def _triangular(logits: Tensor, values: Tensor, ks: Tensor) -> Tensor:
    return torch.cat([_own_softmax(logits, values, block) for block in torch.split(ks, _BLOCK)])


def _own_softmax(logits: Tensor, values: Tensor, ks: Tensor) -> Tensor:
    peaks = torch.cummax(logits, dim=0).values[ks - 1]  # [K, R]
    revealed = torch.arange(len(logits), device=logits.device)[None, :] < ks[:, None]  # [K, N]
    exponent = logits.T[:, None, :] - peaks.T[:, :, None]  # [R, K, N]
    weights = torch.exp(exponent.masked_fill(~revealed, -torch.inf))
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return (weights @ values.transpose(0, 1)).transpose(0, 1)
