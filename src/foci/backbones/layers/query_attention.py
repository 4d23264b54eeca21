r"""Multi-head attention with learned queries.

As the query :math:`q` does not depend on the bag, the key projection of head j folds into one
vector per head, and as softmax weights add up to 1, values may be projected before or after the
pooling:

.. math:: a_{ji} = \frac{\langle q_j, K_j h_i + b_j\rangle}{\sqrt{d/H}}
   = \Big\langle \frac{K_j^\top q_j}{\sqrt{d/H}}, h_i\Big\rangle + \mathrm{const}_j, \qquad
   \sum_i w_{ji} (V_j h_i + c_j) = V_j \Big(\sum_i w_{ji} h_i\Big) + c_j

Both are exact. A whole bag is cheapest when it is pooled first, its N tiles then cost H numbers
each; many prefixes are cheapest when tiles are projected first, each then pools d/H numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.errors import FociError


class HeadReadout(nn.Module):
    r"""Output of multi-head attention: the pooled tokens of H heads become one token.

    .. math:: o = \mathrm{LayerNorm}\big(W_o\,[V_1 z_1 + c_1; \dots; V_H z_H + c_H] + b_o\big)

    Args:
        d: Token width, a multiple of ``heads``.
        heads: Number of heads H.
        dropout: Before the LayerNorm, while training.
    """

    def __init__(self, d: int, heads: int, dropout: float) -> None:
        if d % heads:
            raise FociError(
                f"d={d}", f"cannot be split into {heads} heads", "choose a multiple of the heads"
            )
        super().__init__()
        self.heads = heads
        self.v = nn.Linear(d, d)
        self.out = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d, eps=1e-6)
        self.dropout = nn.Dropout(dropout)

    def project(self, tokens: Tensor) -> Tensor:
        """Values ``[..., H, d/H]`` of one token per head, or of one token for all of them.

        Args:
            tokens: ``[..., H, d]`` (pooled, head by head) or ``[..., 1, d]`` (a tile).
        """
        if tokens.shape[-2] == 1:
            return torch.unflatten(self.v(tokens.squeeze(-2)), -1, (self.heads, -1))
        weight = torch.unflatten(self.v.weight, 0, (self.heads, -1))
        bias = torch.unflatten(self.v.bias, 0, (self.heads, -1))
        return torch.einsum("...hd,hed->...he", tokens, weight) + bias

    def forward(self, values: Tensor) -> Tensor:
        """Pooled values ``[..., H, d/H]`` to a token ``[..., d]``."""
        token: Tensor = self.norm(self.dropout(self.out(values.flatten(-2))))
        return token


class QueryAttention(HeadReadout):
    """Multi-head attention logits for one learned query; the caller pools, the readout follows."""

    def __init__(self, d: int, heads: int, dropout: float) -> None:
        super().__init__(d, heads, dropout)
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d)

    def logits(self, query: Tensor, tokens: Tensor) -> Tensor:
        """Query ``[d]`` and tokens ``[..., N, d]`` to attention logits ``[..., N, H]``."""
        queries = torch.unflatten(self.q(query), -1, (self.heads, -1))
        queries = queries * queries.shape[-1] ** -0.5
        keys = torch.unflatten(self.k.weight, 0, (self.heads, -1))
        weight = torch.einsum("he,hed->hd", queries, keys)
        bias = (queries * torch.unflatten(self.k.bias, 0, (self.heads, -1))).sum(dim=-1)
        return F.linear(tokens, weight, bias)


class QueryBranches(nn.Module):
    """K learned queries, each with its own multi-head attention.

    Args:
        d: Token width.
        branches: Number of queries K.
        heads: Heads H of every attention.
        dropout: On every attention's output, while training.
    """

    def __init__(self, d: int, branches: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.queries = nn.Parameter(nn.init.normal_(torch.empty(1, branches, d), std=1e-6))
        self.attention = nn.ModuleList(QueryAttention(d, heads, dropout) for _ in range(branches))

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to logits ``[..., N, K*H]``, ordered by query, then by head."""
        attentions = cast("Iterable[QueryAttention]", self.attention)
        pairs = zip(attentions, self.queries[0], strict=True)
        return torch.cat([attention.logits(query, tokens) for attention, query in pairs], dim=-1)

    def project(self, tokens: Tensor) -> Tensor:
        """Pooled tokens ``[..., K*H, d]`` or tiles ``[..., 1, d]`` to values of width d/H."""
        attentions = cast("Iterable[QueryAttention]", self.attention)
        if tokens.shape[-2] == 1:
            return torch.cat([attention.project(tokens) for attention in attentions], dim=-2)
        pairs = zip(attentions, tokens.chunk(len(self.attention), dim=-2), strict=True)
        return torch.cat([attention.project(group) for attention, group in pairs], dim=-2)

    def summarise(self, values: Tensor) -> Tensor:
        """Pooled values ``[..., K*H, d/H]`` to one token per query ``[..., K, d]``."""
        pairs = zip(self.attention, values.chunk(len(self.attention), dim=-2), strict=True)
        return torch.stack([attention(group) for attention, group in pairs], dim=-2)

    def read(self, pooled: Tensor) -> Tensor:
        """Pooled tokens ``[..., K*H, d]`` to one token per query ``[..., K, d]``."""
        return self.summarise(self.project(pooled))
