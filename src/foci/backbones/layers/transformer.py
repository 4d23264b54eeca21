"""Pre-norm transformer encoder layer, and PPEG, the position encoding of the official TransMIL."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.layers.attention import ACTIVATIONS
from foci.backbones.layers.softmax_pooling import pool, softmax_weights


class EncoderLayer(nn.Module):
    r"""Pre-norm self-attention followed by a feed-forward block.

    .. math:: H' = H + W_o\,\mathrm{attend}(\mathrm{LN}(H)), \qquad
       H'' = H' + W_2\,\phi(W_1 \mathrm{LN}(H'))

    ``qkv`` and ``feed_forward`` work token by token and only ``attend`` mixes them, so keys and
    values of a token may be computed once and serve every subset that contains it.

    Each head is d / heads wide, the feed-forward block ``hidden``, or absent where that is None;
    :math:`\phi` is ``"gelu"`` or ``"relu"``, and comes behind :math:`W_2` too where
    ``activate_twice``. Dropout is at the end of both blocks.
    """

    def __init__(
        self,
        d: int,
        heads: int,
        hidden: int | None,
        activation: str = "gelu",
        dropout: float = 0.0,
        activate_twice: bool = False,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(d)
        self.query = nn.Linear(d, d)
        self.key_value = nn.Linear(d, 2 * d)
        self.output = nn.Linear(d, d)
        self.activation, self.activate_twice = ACTIVATIONS[activation], activate_twice
        self.has_feed_forward = hidden is not None
        if hidden is not None:
            self.feed_forward_norm = nn.LayerNorm(d)
            self.widen = nn.Linear(d, hidden)
            self.narrow = nn.Linear(hidden, d)
        self.dropout = nn.Dropout(dropout)

    def qkv(self, tokens: Tensor, n_queries: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens ``[..., n, d]`` to queries, keys and values ``[..., heads, n, d / heads]``.

        Only the ``n_queries`` leading tokens get a query; None for all.
        """
        normed = self.attention_norm(tokens)
        keys, values = self.key_value(normed).chunk(2, dim=-1)
        queries = self.query(normed[..., :n_queries, :])
        return self._split(queries), self._split(keys), self._split(values)

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        gate: Tensor | None = None,
    ) -> Tensor:
        r"""Scaled dot-product attention with a mask and a gate, ``[..., n_queries, d]``.

        .. math:: w_{ij} = \frac{g_j\, e^{q_i \cdot k_j / \sqrt{d_h}}}
           {\sum_{j'} g_{j'}\, e^{q_i \cdot k_{j'} / \sqrt{d_h}}}

        Queries, keys and values as from :meth:`qkv`; the mask ``[..., n]`` is True where a key is
        present, and a gate :math:`g_j` of 0 removes a key.
        """
        over_heads = None if mask is None else mask.unsqueeze(-2)
        if gate is None:
            rows = None if over_heads is None else over_heads.unsqueeze(-2)
            gathered = F.scaled_dot_product_attention(q, k, v, attn_mask=rows)
        else:
            logits = k @ q.transpose(-1, -2) * q.shape[-1] ** -0.5
            weights = softmax_weights(logits, over_heads, gate.unsqueeze(-2))
            gathered = pool(weights, v.unsqueeze(-2))
        return self.merge(gathered)

    def merge(self, gathered: Tensor) -> Tensor:
        """Merge heads ``[..., heads, n, d / heads]`` and project, ``[..., n, d]``."""
        out: Tensor = self.dropout(self.output(gathered.transpose(-3, -2).flatten(-2)))
        return out

    def feed_forward(self, tokens: Tensor) -> Tensor:
        """Feed-forward block without its residual, ``[..., n, d]``."""
        if not self.has_feed_forward:
            return torch.zeros_like(tokens)
        out: Tensor = self.narrow(self.activation(self.widen(self.feed_forward_norm(tokens))))
        if self.activate_twice:
            out = self.activation(out)
        return self.dropout(out)  # type: ignore[no-any-return]

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        gate: Tensor | None = None,
        n_queries: int | None = None,
    ) -> Tensor:
        """Tokens ``[..., n, d]`` to the next layer's first ``n_queries`` tokens (None for all)."""
        q, k, v = self.qkv(tokens, n_queries)
        tokens = tokens[..., :n_queries, :] + self.attend(q, k, v, mask, gate)
        return tokens + self.feed_forward(tokens)

    def first(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        r"""Output of the first token alone, ``[..., d]``, from the layer's input ``[..., n, d]``.

        The same as ``forward(tokens, mask, gate, n_queries=1)``, but with one query per head no
        keys and values need be formed. Up to a constant, which a softmax does not see,

        .. math:: q^\top (W_k x_j + b_k) = (W_k^\top q)^\top x_j, \qquad
           \sum_j w_j (W_v x_j + b_v) = W_v \sum_j w_j x_j + b_v
        """
        normed = self.attention_norm(tokens)
        d = normed.shape[-1]
        key, value = self.key_value.weight.view(2, self.heads, -1, d)
        query = self.query(normed[..., 0, :]).unflatten(-1, (self.heads, -1))
        probe = torch.einsum("...hw,hwd->...hd", query * query.shape[-1] ** -0.5, key)
        weights = softmax_weights(normed @ probe.transpose(-1, -2), mask, gate)
        mixed = pool(weights, normed.unsqueeze(-2))
        gathered = torch.einsum("...hd,hwd->...hw", mixed, value).flatten(-2)
        gathered = gathered + self.key_value.bias[d:]
        out: Tensor = tokens[..., 0, :] + self.dropout(self.output(gathered))
        return out + self.feed_forward(out)

    def _split(self, tokens: Tensor) -> Tensor:
        return tokens.view(*tokens.shape[:-1], self.heads, -1).transpose(-3, -2)


def squared(tokens: Tensor) -> Tensor:
    """Pad a sequence to a square length by repeating its first tiles.

    >>> squared(torch.tensor([[[1.0], [2.0]]])).flatten().tolist()
    [1.0, 2.0, 1.0, 2.0]
    """
    n = tokens.shape[1]
    side = math.isqrt(n - 1) + 1 if n else 0
    return torch.cat([tokens, tokens[:, : side * side - n]], dim=1)


class PPEG(nn.Module):
    r"""Position encoding by convolutions over the tiles, laid out row by row (Shao et al. 2021).

    The tiles' real positions play no part.

    .. math:: \mathrm{PPEG}(H) = H + \mathrm{conv}_{7}(H) + \mathrm{conv}_{5}(H)
       + \mathrm{conv}_{3}(H)

    depth-wise, with zero padding at the border.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.conv7 = nn.Conv2d(d, d, 7, padding=3, groups=d)
        self.conv5 = nn.Conv2d(d, d, 5, padding=2, groups=d)
        self.conv3 = nn.Conv2d(d, d, 3, padding=1, groups=d)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens ``[B, s*s, d]`` of a full square to the same shape."""
        side = math.isqrt(tokens.shape[1])
        grid = tokens.unflatten(1, (side, side)).permute(0, 3, 1, 2)  # channels last, as stored
        weights = [conv.weight for conv in (self.conv7, self.conv5, self.conv3)]
        kernel = torch.stack([F.pad(w, (i, i, i, i)) for i, w in enumerate(weights)]).sum(dim=0)
        bias = self.conv7.bias + self.conv5.bias + self.conv3.bias  # type: ignore[operator]
        mixed = F.conv2d(grid, kernel, bias, padding=3, groups=len(kernel))
        return tokens + mixed.permute(0, 2, 3, 1).flatten(1, 2)


class CroppedPPEG(PPEG):
    """PPEG for any number of tiles, as in MHIM-MIL.

    The bag is padded to a square, with zeros to 7 x 7 if smaller, and cropped afterwards.
    """

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens ``[B, n, d]`` to the same shape."""
        square = squared(tokens)
        square = F.pad(square, (0, 0, 0, max(0, 7 * 7 - square.shape[1])))
        return super().forward(square)[:, : tokens.shape[1]]
