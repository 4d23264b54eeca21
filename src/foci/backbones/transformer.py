r"""Layers of transformers: plain encoder layer, PPEG, and Nyström attention (Xiong et al. 2021).

PPEG and Nyström attention are those of the official TransMIL. Softmax attention between all n
tokens is replaced by a product through m landmarks,

.. math:: \hat S = S_1\, S_2^{+}\, S_3, \qquad
   S_1 = \sigma(Q \tilde K^\top),\; S_2 = \sigma(\tilde Q \tilde K^\top),\;
   S_3 = \sigma(\tilde Q K^\top)

where :math:`\tilde Q, \tilde K` are means over m consecutive segments, :math:`\sigma` is the
row-wise softmax and :math:`S_2^{+}` an iterated pseudo-inverse. The sequence is filled up *in
front* with zero tokens to a multiple of m, and these are attended to like any other: what a tile
contributes depends on its position and on how many tiles there are.

The zero tokens have query, key and value 0, so nothing is computed for them. Landmarks that average
only such tokens are all alike. The z of them are merged into one by the matrix P whose first column
is :math:`(1, \dots, 1, 0, \dots) / \sqrt z` and whose others are unit vectors: every factor is left
unchanged by :math:`P P^\top` on its landmark side, hence so is every iterate of the pseudo-inverse,
and the product is the same with :math:`S_1 P`, :math:`P^\top S_2 P` and :math:`P^\top S_3`. A few
tiles then cost a few tokens and landmarks, not all m.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.attention import ACTIVATIONS, pool, softmax_weights


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
        # channels last, as stored
        grid = torch.unflatten(tokens, 1, (side, side)).permute(0, 3, 1, 2)
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


_PINV_ITERATIONS = 6
_KERNEL = 33


def iterated_pinv(a: Tensor, scale: Tensor, iterations: int = _PINV_ITERATIONS) -> Tensor:
    r"""Pseudo-inverse of ``[B, H, m, m]`` by six iterations (Razavi et al. 2014).

    .. math:: Z_{t+1} = \tfrac14 Z_t \big(13 I - A Z_t (15 I - A Z_t (7 I - A Z_t))\big), \qquad
       Z_0 = A^\top / \mathrm{scale}

    Six iterations still depend on their start: the scale is part of the model.
    """
    z = a.transpose(-1, -2) / scale
    identity = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    for _ in range(iterations):
        az = a @ z
        z = 0.25 * z @ (13 * identity - az @ (15 * identity - az @ (7 * identity - az)))
    return z


def pinv_times(a: Tensor, scale: Tensor, values: Tensor) -> Tensor:
    """:func:`iterated_pinv` times ``[B, H, m, w]``; its last iteration only meets w columns."""
    z = iterated_pinv(a, scale, _PINV_ITERATIONS - 1)
    rest = 7 * values - a @ (z @ values)
    rest = 15 * values - a @ (z @ rest)
    return 0.25 * z @ (13 * values - a @ (z @ rest))


def _weighted(keys: Tensor, alike: int) -> Tensor | None:
    """Logits ``[1, n]`` to add, with the first of n keys for so many that are alike; or None."""
    if alike < 2:
        return None
    return F.pad(keys.new_full((1, 1), math.log(alike)), (0, keys.shape[-2] - 1))


def _attention(queries: Tensor, keys: Tensor, alike: int) -> Tensor:
    """Softmax weights ``[..., r, n]``; the first key stands for so many that are alike."""
    logits = queries @ keys.transpose(-1, -2) * queries.shape[-1] ** -0.5
    more = _weighted(keys, alike)
    return torch.softmax(logits if more is None else logits + more, dim=-1)


def _attended(queries: Tensor, keys: Tensor, values: Tensor, alike: int) -> Tensor:
    """:func:`_attention` times ``[..., n, w]``, without the weights in memory."""
    more = _weighted(keys, alike)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=more)


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

    def project(self, tokens: Tensor) -> Tensor:
        """Queries, keys and values ``[..., n, 3 * heads * head_width]``, token by token."""
        projected: Tensor = self.qkv(tokens)
        return projected

    def _landmarks(
        self, tokens: Tensor, rows: int, projected: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, int, int]:
        """Queries of the first rows of the result, keys, values, landmarks of queries and of keys.

        For n tokens and m' landmarks after merging ``[B, H, rows, w]``, twice ``[B, H, n, w]`` and
        twice ``[B, H, m', w]``; how many landmarks the first one stands for, and the number of zero
        tokens. Where there are any, the first key and value stand for them, and n is one more.
        """
        padding = -tokens.shape[1] % self.landmarks
        length = (tokens.shape[1] + padding) // self.landmarks
        alike, partly = divmod(padding, length)

        def means(x: Tensor) -> Tensor:
            first, others = x.tensor_split([length - partly], dim=1)
            segments = (self.landmarks - alike - 1, length)
            others = torch.unflatten(others, 1, segments).mean(dim=2)
            return torch.cat([first.sum(dim=1, keepdim=True) / length, others], dim=1)

        if projected is None:  # queries beyond the rows are only needed as means
            query, key_value = self.qkv.weight.tensor_split([self.heads * self.head_width])
            keys, values = F.linear(tokens, key_value).chunk(2, dim=-1)
            # flat: for some rows torch takes another kernel when the weights need no gradient
            queries = F.linear(tokens[:, :rows].flatten(0, 1), query)
            queries = torch.unflatten(queries, 0, (len(tokens), -1))
            q_means = F.linear(means(tokens), query)
        else:
            queries, keys, values = projected.chunk(3, dim=-1)
            q_means = means(queries)
        q, k, v, q_landmarks, k_landmarks = (
            torch.unflatten(F.pad(x, (0, 0, zeros, 0)), -1, (self.heads, -1)).transpose(1, 2)
            for x, zeros in (
                (queries, 0 if self.aligned else padding),
                (keys, int(padding > 0)),
                (values, int(padding > 0)),
                (q_means, int(alike > 0)),
                (means(keys), int(alike > 0)),
            )
        )
        return q[:, :, :rows], k, v, q_landmarks, k_landmarks, alike, padding

    @staticmethod
    def _merged(q_landmarks: Tensor, k_landmarks: Tensor, alike: int) -> tuple[Tensor, ...]:
        r""":math:`P^\top S_2 P` ``[B, H, m', m']``, its scale, and the entries of P ``[m', 1]``.

        With the weights of all columns that a landmark stands for in one, :math:`S_1 P` and
        :math:`P^\top S_3` are :math:`S_1` divided and :math:`S_3` multiplied by these entries.
        """
        s2 = _attention(q_landmarks, k_landmarks, alike)
        counts = torch.ones_like(s2[0, 0, :, :1])
        counts[0] = max(alike, 1)
        # row sums are 1; a column of every landmark, over all of them
        scale = ((counts * s2).sum(dim=-2) / counts[:, 0]).amax(dim=(-2, -1))
        root = counts.sqrt()
        return s2 * root / root.T, scale[..., None, None, None], root

    def forward(
        self, tokens: Tensor, rows: int | None = None, projected: Tensor | None = None
    ) -> Tensor:
        """Tokens ``[B, n, d]`` to ``[B, n, d]``, or to the first ``rows`` of them.

        ``projected`` is what :meth:`project` gives for the tokens, where that is known already.
        """
        rows = tokens.shape[1] if rows is None else rows
        q, k, v, q_landmarks, k_landmarks, alike, padding = self._landmarks(tokens, rows, projected)
        s2, scale, root = self._merged(q_landmarks, k_landmarks, alike)
        gathered = root * _attended(q_landmarks, k, v, padding)
        spread = pinv_times(s2, scale, gathered) / root
        near = v[:, :, int(padding > 0) :]
        if not self.aligned:
            near = F.pad(near, (0, 0, padding, 0))
        local = self.residual(near[:, :, : rows + _KERNEL // 2])[:, :, :rows]
        mixed = _attended(q, k_landmarks, spread, alike) + local
        out: Tensor = self.dropout(self.output(mixed.transpose(1, 2).flatten(2)))
        return out

    def cls_row(self, tokens: Tensor) -> Tensor:
        r"""The first token's row of :math:`\hat S`: tokens ``[B, n, d]`` to ``[B, H, n]``.

        A product with a pseudo-inverse, so entries may be negative.
        """
        own = 1 if self.aligned else 1 + -tokens.shape[1] % self.landmarks
        q, k, _, q_landmarks, k_landmarks, alike, padding = self._landmarks(tokens, own)
        s2, scale, root = self._merged(q_landmarks, k_landmarks, alike)
        s1 = _attention(q[:, :, -1:], k_landmarks, alike) / root.T
        s3 = root * _attention(q_landmarks, k, padding)
        return ((s1 @ iterated_pinv(s2, scale)) @ s3).squeeze(-2)[..., int(padding > 0) :]


class NystromLayer(nn.Module):
    """Pre-norm Nyström attention with a residual: ``h + attention(LayerNorm(h))``.

    There is no feed-forward block.
    """

    def __init__(self, attention: NystromAttention) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(attention.output.out_features)
        self.attention = attention

    @property
    def widths(self) -> list[int]:
        """Of a token, and of its queries, keys and values."""
        return [self.attention.qkv.in_features, self.attention.qkv.out_features]

    def share(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., n, d]`` with their queries, keys and values behind them.

        These do not depend on the other tokens, and serve every subset of a bag.
        """
        return torch.cat([tokens, self.attention.project(self.norm(tokens))], dim=-1)

    def shared(self, tokens: Tensor) -> Tensor:
        """:meth:`forward` of what :meth:`share` gives."""
        tokens, projected = torch.split(tokens, self.widths, dim=-1)
        out: Tensor = tokens + self.attention(tokens, projected=projected)
        return out

    def forward(self, tokens: Tensor, rows: int | None = None) -> Tensor:
        """Tokens ``[B, n, d]`` to ``[B, n, d]``, or to the first ``rows`` of them."""
        out: Tensor = tokens[:, :rows] + self.attention(self.norm(tokens), rows)
        return out

    def cls_row(self, tokens: Tensor) -> Tensor:
        """The first token's attention in this layer, ``[B, H, n]``."""
        return self.attention.cls_row(self.norm(tokens))
