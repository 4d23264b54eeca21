r"""Nyström self-attention (Xiong et al. 2021) as the official TransMIL uses it.

Softmax attention between all n tokens is replaced by a product through m landmarks,

.. math:: \hat S = S_1\, S_2^{+}\, S_3, \qquad
   S_1 = \sigma(Q \tilde K^\top),\; S_2 = \sigma(\tilde Q \tilde K^\top),\;
   S_3 = \sigma(\tilde Q K^\top)

where :math:`\tilde Q, \tilde K` are means over m consecutive segments, :math:`\sigma` is the
row-wise softmax and :math:`S_2^{+}` an iterated pseudo-inverse. The sequence is filled up *in
front* with zero tokens to a multiple of m, and these are attended to like any other: what a tile
contributes depends on its position and on how many tiles there are.

Landmarks that average only such zero tokens are all alike. The z of them are merged into one by
the matrix P whose first column is :math:`(1, \dots, 1, 0, \dots) / \sqrt z` and whose others are
unit vectors: every factor is left unchanged by :math:`P P^\top` on its landmark side, hence so is
every iterate of the pseudo-inverse, and the product is the same with :math:`S_1 P`,
:math:`P^\top S_2 P` and :math:`P^\top S_3`. A few tiles then cost a few landmarks, not all m.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_PINV_ITERATIONS = 6
_KERNEL = 33


def pinv_scale(a: Tensor) -> Tensor:
    r"""Starting scale ``[B, 1, 1, 1]`` of the pseudo-inverse of ``[B, H, m, m]``.

    .. math:: \max_i \sum_j |a_{ij}| \; \max_j \sum_i |a_{ij}|

    Both maxima run over the heads and rows of *one* batch item, so that a bag gets the same
    result in any batch.
    """
    rows, columns = a.abs().sum(dim=-1), a.abs().sum(dim=-2)
    return (rows.amax(dim=(-2, -1)) * columns.amax(dim=(-2, -1)))[..., None, None, None]


def iterated_pinv(a: Tensor, scale: Tensor) -> Tensor:
    r"""Pseudo-inverse of ``[B, H, m, m]`` by six iterations (Razavi et al. 2014).

    .. math:: Z_{t+1} = \tfrac14 Z_t \big(13 I - A Z_t (15 I - A Z_t (7 I - A Z_t))\big), \qquad
       Z_0 = A^\top / \mathrm{scale}

    Six iterations still depend on their start: the scale is part of the model.
    """
    z = a.transpose(-1, -2) / scale
    identity = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    for _ in range(_PINV_ITERATIONS):
        az = a @ z
        z = 0.25 * z @ (13 * identity - az @ (15 * identity - az @ (7 * identity - az)))
    return z


def _merge_alike(factor: Tensor, alike: int, dim: int) -> Tensor:
    r"""Merge the first ``alike`` = z equal landmarks into one, times :math:`\sqrt z`."""
    if alike < 2:
        return factor
    first = factor.narrow(dim, 0, 1) * math.sqrt(alike)
    return torch.cat([first, factor.narrow(dim, alike, factor.shape[dim] - alike)], dim=dim)


class NystromAttention(nn.Module):
    r"""Multi-head Nyström attention :math:`\hat S V + \mathrm{conv}(V)` with output projection.

    The residual convolution runs along the sequence, one filter of 33 taps per head. The heads
    together need not have the width d. Where ``aligned``, every token gets its own row of the
    result. The Nyström package that the official TransMIL was published with (0.0.9) returned the
    first n rows instead, which begin with those of the zero tokens in front; False reproduces that.
    """

    def __init__(
        self,
        d: int,
        heads: int,
        head_width: int,
        landmarks: int,
        dropout: float = 0.0,
        aligned: bool = True,
    ) -> None:
        super().__init__()
        self.heads, self.head_width, self.landmarks = heads, head_width, landmarks
        self.aligned = aligned
        self.qkv = nn.Linear(d, 3 * heads * head_width, bias=False)
        self.residual = nn.Conv2d(
            heads, heads, (_KERNEL, 1), padding=(_KERNEL // 2, 0), groups=heads, bias=False
        )
        self.output = nn.Linear(heads * head_width, d)
        self.dropout = nn.Dropout(dropout)

    def _factors(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        r""":math:`S_1 P`, the pseudo-inverse of :math:`P^\top S_2 P`, :math:`P^\top S_3`, and V.

        Over the padded sequence of n tokens, with m' landmarks after merging: ``[B, H, n, m']``,
        ``[B, H, m', m']``, ``[B, H, m', n]`` and ``[B, H, n, head_width]``.
        """
        padding = -tokens.shape[1] % self.landmarks
        tokens = F.pad(tokens, (0, 0, padding, 0))
        alike = padding // (tokens.shape[1] // self.landmarks)
        qkv = self.qkv(tokens).unflatten(-1, (3, self.heads, self.head_width))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q = q * self.head_width**-0.5
        q_landmarks = q.unflatten(2, (self.landmarks, -1)).mean(dim=3)
        k_landmarks = k.unflatten(2, (self.landmarks, -1)).mean(dim=3)
        s1 = torch.softmax(q @ k_landmarks.transpose(-1, -2), dim=-1)
        s2 = torch.softmax(q_landmarks @ k_landmarks.transpose(-1, -2), dim=-1)
        s3 = torch.softmax(q_landmarks @ k.transpose(-1, -2), dim=-1)
        merged = _merge_alike(_merge_alike(s2, alike, -1), alike, -2)
        inverse = iterated_pinv(merged, pinv_scale(s2))
        return _merge_alike(s1, alike, -1), inverse, _merge_alike(s3, alike, -2), v

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens ``[B, n, d]`` to ``[B, n, d]``."""
        s1, inverse, s3, v = self._factors(tokens)
        mixed = (s1 @ inverse) @ (s3 @ v) + self.residual(v)
        n = tokens.shape[1]
        mixed = mixed[:, :, -n:] if self.aligned else mixed[:, :, :n]
        out: Tensor = self.dropout(self.output(mixed.transpose(1, 2).flatten(2)))
        return out

    def cls_row(self, tokens: Tensor) -> Tensor:
        r"""The first token's row of :math:`\hat S`: tokens ``[B, n, d]`` to ``[B, H, n]``.

        A product with a pseudo-inverse, so entries may be negative.
        """
        n = tokens.shape[1]
        s1, inverse, s3, _ = self._factors(tokens)
        return ((s1[:, :, -n].unsqueeze(-2) @ inverse) @ s3[..., -n:]).squeeze(-2)


class NystromLayer(nn.Module):
    """Pre-norm Nyström attention with a residual: ``h + attention(LayerNorm(h))``.

    There is no feed-forward block.
    """

    def __init__(self, attention: NystromAttention) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(attention.output.out_features)
        self.attention = attention

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens ``[B, n, d]`` to ``[B, n, d]``."""
        out: Tensor = tokens + self.attention(self.norm(tokens))
        return out

    def cls_row(self, tokens: Tensor) -> Tensor:
        """The first token's attention in this layer, ``[B, H, n]``."""
        return self.attention.cls_row(self.norm(tokens))
