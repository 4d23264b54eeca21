"""Scaled dot-product attention with gated keys, on the fused kernel."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from foci.backbones.layers.softmax_pooling import MAX_EXCESS

_IN_FLIGHT = 2**20  # pairs of query and key, over all heads, whose weights are held at once


def gated_attention(q: Tensor, k: Tensor, v: Tensor, gate: Tensor, n_open: int) -> Tensor:
    r"""Attention over gated keys, with the gradient of every gate.

    .. math:: o_i = \sum_j g_j r_{ij} v_j, \qquad
       r_{ij} = \frac{e^{s_{ij}}}{\sum_{j'} g_{j'} e^{s_{ij'}}}, \qquad
       s_{ij} = q_i \cdot k_j / \sqrt{d_h}

    A closed key, :math:`g_j = 0`, plays no part in the value. Its gate has a gradient nevertheless,
    by the same formula as an open one:

    .. math:: \frac{\partial L}{\partial g_j} = \sum_i r_{ij}\, \langle o_i', v_j - o_i \rangle
       = \Big\langle v_j, \sum_i r_{ij} o_i' \Big\rangle - \sum_i r_{ij} \langle o_i', o_i \rangle,
       \qquad o_i' = \frac{\partial L}{\partial o_i}

    The output comes from the fused kernel, which keeps no weights. The backward pass computes them
    again, for some queries at a time, with the cap of
    :func:`~foci.backbones.layers.softmax_pooling.softmax_weights`.

    Args:
        q: Queries ``[1, heads, n_queries, d / heads]``.
        k: Keys ``[1, heads, n, d / heads]``, open ones first.
        v: Values, like the keys. Closed keys and values get no gradient.
        gate: ``[n]``, above 0 for the first ``n_open`` and 0 for the others.
        n_open: How many keys are open; at least 1.

    Returns:
        ``[1, heads, n_queries, d / heads]``.

    >>> one, two = torch.ones(1, 1, 1, 1), torch.tensor([[[[1.0], [5.0]]]])
    >>> gate = torch.tensor([1.0, 0.0], requires_grad=True)
    >>> gathered = gated_attention(one, torch.zeros_like(two), two, gate, n_open=1)
    >>> gathered.item(), torch.autograd.grad(gathered.sum(), gate)[0].tolist()
    (1.0, [0.0, 4.0])
    """
    gathered: Tensor = _GatedAttention.apply(q, k, v, gate, n_open)  # type: ignore[no-untyped-call]
    return gathered


class _GatedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, gate: Tensor, n_open: int) -> Tensor:
        opened = gate[:n_open]
        shift = None if bool((opened == 1).all()) else opened.log().view(1, 1, 1, -1)
        out = F.scaled_dot_product_attention(
            q, k[..., :n_open, :], v[..., :n_open, :], attn_mask=shift
        )
        ctx.save_for_backward(q, k, v, gate, out)
        ctx.n_open = n_open
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (q, k, v, gate, out), n_open = ctx.saved_tensors, ctx.n_open
        scale, inside = q.shape[-1] ** -0.5, any(ctx.needs_input_grad[:3])
        q = q * scale
        # One more coordinate, 1 in every value, takes <o', o> along through every product.
        v = F.pad(v, (0, 1), value=1.0)
        grad = torch.cat([grad, -(grad * out).sum(dim=-1, keepdim=True)], dim=-1)
        of_q, of_k, of_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        opened, open_v, open_of_k = gate[:n_open, None], v[..., :n_open, :], of_k[..., :n_open, :]
        keys = opened * k[..., :n_open, :] * scale
        for rows in _blocks(q.shape[-2], q.shape[-3] * len(gate)):
            queries = q[..., rows, :]
            raised, total = _raise(queries @ k.transpose(-1, -2), gate, n_open)
            pull = grad[..., rows, :] / total
            of_v += raised.transpose(-1, -2) @ pull
            if inside:
                slope = raised[..., :n_open].mul_(pull @ open_v.transpose(-1, -2))
                of_q[..., rows, :] = slope @ keys
                open_of_k += slope.transpose(-1, -2) @ queries
        of_gate = (v * of_v).sum(dim=(0, 1, 3))
        if not inside:
            return None, None, None, of_gate, None
        return of_q, of_k * gate[:, None], of_v[..., :-1] * gate[:, None], of_gate, None


def _raise(logits: Tensor, gate: Tensor, n_open: int) -> tuple[Tensor, Tensor]:
    """Numerator and denominator of r in :func:`gated_attention`; the first replaces the logits."""
    logits -= logits[..., :n_open].amax(dim=-1, keepdim=True)
    logits[..., n_open:].clamp_(max=MAX_EXCESS)
    raised = logits.exp_()
    return raised, (raised @ gate).clamp_min(torch.finfo(raised.dtype).tiny).unsqueeze(-1)


def _blocks(n_queries: int, per_query: int) -> list[slice]:
    size = max(1, _IN_FLIGHT // per_query)
    return [slice(start, start + size) for start in range(0, n_queries, size)]
