r"""Softmax pooling of a set of tiles, of a gated set, and of every prefix of an ordered set.

All three compute, for attention logits :math:`a` and values :math:`v`,

.. math:: z = \sum_i w_i v_i, \qquad w_i = \frac{g_i e^{a_i}}{\sum_j g_j e^{a_j}}

over the tiles that are present. Softmax-plus-one adds 1 to the denominator, which is one more tile
with logit 0 and value 0: the weights of the others sum to less than 1.

Shapes: logits ``[..., N, R]`` for R rows (branches, heads or classes), values
``[..., N, 1 or R, dv]``, pooled ``[..., R, dv]``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

MAX_EXCESS = 30.0
"""Largest excess of a gated-out tile's logit over the kept ones. Its weight is 0, but its gradient
is proportional to exp(logit - max kept), which has to stay finite."""

_BLOCK = 64
"""Prefixes per block where each needs a softmax of its own."""

_SUMMED_AT_ONCE = 2**16
"""Numbers per block of a running sum: 512 KiB in float64, which stay in a processor's cache."""

RISE = 600.0
"""Rise of the attention logits over the first one up to which nothing underflows in float64."""

_ALWAYS_IN = 32
"""Tiles that are in every prefix, from which on they are summed as one product."""


def softmax_weights(
    logits: Tensor,
    mask: Tensor | None = None,
    gate: Tensor | None = None,
    *,
    plus_one: bool = False,
) -> Tensor:
    """Softmax over the tiles with a mask and a gate ``[..., N]``, ``[..., N, R]`` as the logits.

    The mask is True where a tile is present. The gate multiplies the unnormalised weight and is
    differentiable at 0 too. A tile that is masked out or gated to 0 has weight 0.

    >>> softmax_weights(torch.tensor([[0.0], [0.0], [9.0]]), torch.tensor([True, True, False]))
    tensor([[0.5000],
            [0.5000],
            [0.0000]])
    """
    if mask is not None:
        logits = logits.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    if plus_one:
        gate = None if gate is None else F.pad(gate, (0, 1), value=1.0)
        return softmax_weights(with_empty_tile(logits), gate=gate)[..., :-1, :]
    if gate is None:
        return torch.softmax(logits, dim=-2)
    gate = gate.unsqueeze(-1)
    kept = logits.masked_fill(gate <= 0, -torch.inf)
    peak = kept.amax(dim=-2, keepdim=True).detach()
    peak = peak.masked_fill(peak.isneginf(), 0.0)
    weights = gate * torch.exp((logits - peak).clamp(max=MAX_EXCESS))
    total = weights.sum(dim=-2, keepdim=True)
    return weights / total.clamp_min(torch.finfo(weights.dtype).tiny)


def with_empty_tile(logits: Tensor) -> Tensor:
    """Logits ``[..., N + 1, R]`` with the tile of logit 0 that softmax-plus-one adds, last."""
    return F.pad(logits, (0, 0, 0, 1))


def pool(weights: Tensor, values: Tensor) -> Tensor:
    """Weighted sums ``[..., R, dv]`` of values ``[..., N, 1 or R, dv]``."""
    if values.shape[-2] == 1:
        return weights.transpose(-1, -2) @ values.squeeze(-2)
    return torch.einsum("...nr,...nrd->...rd", weights, values)


def prefix_pool(
    logits: Tensor,
    values: Tensor,
    ks: Tensor,
    order: Tensor | None = None,
    *,
    plus_one: bool = False,
) -> Tensor:
    r"""Pooled values of the first k tiles for every k in ``ks``, in float64.

    .. math:: z(k) = \frac{\sum_{i \le k} e^{a_i - m_k} v_i}{\sum_{i \le k} e^{a_i - m_k}},
       \qquad m_k = \max_{i \le k} a_i

    In an arbitrary order the tile with the largest logit may come last. As long as it lies less
    than 600 above the first one, nothing underflows with one maximum for all prefixes, and running
    sums give every count at once; beyond that every count gets a softmax with its own maximum.

    From logits ``[N, R]`` and values ``[N, 1 or R, dv]`` in reveal order, or with their indices in
    reveal order as ``order`` ``[N]``, which saves reordering the values, to ``[K, R, dv]``. The
    counts ``ks`` ``[K]`` may be in any order.

    >>> z = prefix_pool(torch.tensor([[0.0], [900.0]]), torch.tensor([[[1.0]], [[3.0]]]),
    ...                 torch.tensor([1, 2]))
    >>> z.flatten().tolist()
    [1.0, 3.0]
    """
    last = int(ks.max())
    order = torch.arange(last, device=logits.device) if order is None else order[:last]
    if plus_one:  # the tile that it adds comes first in the order
        order, ks = F.pad(order, (1, 0), value=len(logits)), ks + 1
        logits, values = with_empty_tile(logits), F.pad(values, (0, 0, 0, 0, 0, 1))
    logits = logits[order].double()
    rise = (logits.amax(dim=0) - logits[0]).amax()
    if rise < RISE:
        return _running_sums(logits, values, ks, order)
    values = values[order].double()
    return torch.cat([_own_softmax(logits, values, block) for block in torch.split(ks, _BLOCK)])


def always_in(ks: Tensor) -> int:
    """Tiles that are in every prefix, where they are worth a product of their own."""
    always = int(ks.min()) - 1
    return always if always >= _ALWAYS_IN else 0


def _running_sums(logits: Tensor, values: Tensor, ks: Tensor, order: Tensor) -> Tensor:
    """Sums block by block, of which only the counts asked for are kept.

    A block continues from the last sum of the one before. Numbers are thus added in reveal order,
    as in one cumulative sum over all tiles, and the block size changes no bit. Tiles before the
    smallest count (a deletion leaves many) are in every sum, and enter it as one product.
    """
    weights = torch.exp(logits - logits.amax(dim=0))  # [N, R]
    totals = torch.cumsum(weights, dim=0)[ks - 1].unsqueeze(-1)
    at_once = max(1, _SUMMED_AT_ONCE // (weights.shape[1] * values.shape[-1]))
    kept = totals.new_empty(len(ks), weights.shape[1], values.shape[-1])
    carried: Tensor | None = None
    first = always_in(ks)
    if first:
        carried = pool(weights[:first], values[order[:first]].double())
    for start in range(first, len(order), at_once):
        block = slice(start, start + at_once)
        terms = weights[block].unsqueeze(-1) * values[order[block]].double()  # [block, R, dv]
        if carried is not None:
            terms[0] += carried
        sums = torch.cumsum(terms, dim=0)
        if at_once >= len(order) - first:
            return sums[ks - 1 - first] / totals
        carried = sums[-1]
        asked = ((ks > start) & (ks <= start + at_once)).nonzero().squeeze(-1)
        kept[asked] = sums[ks[asked] - 1 - start]
    return kept / totals


def _own_softmax(logits: Tensor, values: Tensor, ks: Tensor) -> Tensor:
    """Pooled values with a softmax of its own for every count, whatever the logits."""
    peaks = torch.cummax(logits, dim=0).values[ks - 1]  # [K, R]
    revealed = torch.arange(len(logits), device=logits.device)[None, :] < ks[:, None]  # [K, N]
    exponent = logits.T[:, None, :] - peaks.T[:, :, None]  # [R, K, N]
    weights = torch.exp(exponent.masked_fill(~revealed, -torch.inf))
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return (weights @ values.transpose(0, 1)).transpose(0, 1)
