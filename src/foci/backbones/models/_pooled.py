"""Attention pooling: tiles meet only in a softmax-weighted sum."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from foci.backbones.base import Backbone, Capabilities, declared, declares
from foci.backbones.layers.mlp import after_affine, split_head
from foci.backbones.layers.softmax_pooling import pool, prefix_pool, softmax_weights

Layer = Callable[[Tensor], Tensor]


class PooledBackbone(Backbone):
    r"""``logits = readout( sum_i softmax(attend(tokens))_i * values(tokens)_i )``.

    The full bag, padded batches, gates and the closed form over prefixes all follow from
    ``embed``, ``attend``, ``values`` and ``readout``. A subclass builds the three modules that
    these use by default,

    .. math:: h_i = \mathrm{projection}(x_i), \quad a_i = \mathrm{attention}(h_i), \quad
       \ell = \mathrm{head}\Big(\sum_i \mathrm{softmax}(a)_i\, h_i\Big),

    or replaces the methods in which it differs.

    Where a readout begins with an affine map, that map may as well come first, because the
    weights of a set of tiles add up to 1:

    .. math:: A \sum_i w_i v_i + b = \sum_i w_i\,(A v_i + b)

    One set of tiles is cheapest when it is pooled first. Many sets of the same tiles are cheapest
    when every tile is projected once and the sums run over fewer numbers. A subclass with another
    readout may therefore give its ``project`` and ``read`` too and decorate all three with
    ``@declares("split-readout")``; one that replaces ``readout`` alone is pooled first.

    Attributes:
        projection: Tile by tile.
        attention: Tokens ``[..., N, d]`` to attention logits ``[..., N, R]``.
        head: One pooled token to logits.
        homogeneous: Whether the projection is; see :class:`Capabilities`.
        plus_one: Whether the softmax has 1 added to its denominator. The weights then sum to less
            than 1, and the readout is not split.
    """

    projection: nn.Module
    attention: nn.Module
    head: nn.Module
    homogeneous: bool = False
    plus_one: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """Order-free, closed form, native score, gates at both sites."""
        return Capabilities(
            order_free=True,
            closed_form=True,
            score="native",
            gate_sites=("feature", "attention"),
            homogeneous=self.homogeneous,
        )

    def embed(self, x: Tensor) -> Tensor:
        """Projection."""
        tokens: Tensor = self.projection(x)
        return tokens

    def attend(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to attention logits ``[..., N, R]``."""
        logits: Tensor = self.attention(tokens)
        return logits

    def values(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to what is pooled, ``[..., N, 1 or R, dv]``."""
        return tokens.unsqueeze(-2)

    @declares("split-readout")
    def readout(self, pooled: Tensor) -> Tensor:
        """Pooled values ``[..., R, dv]`` to logits ``[..., C]``: the head on the one token."""
        logits: Tensor = self.head(pooled.squeeze(-2))
        return logits

    @declares("split-readout")
    def project(self, values: Tensor) -> Tensor:
        """Values ``[..., 1 or R, dv]`` through the affine start of the readout."""
        projected: Tensor = split_head(self.head)[0](values)
        return projected

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        """The rest: ``read(pool(weights, project(values))) == readout(pool(weights, values))``."""
        return after_affine(self.head, projected.squeeze(-2))

    def split(self) -> tuple[Layer, Layer]:
        """What to do to the values before the pooling and to the sums after it.

        ``project`` and ``read`` where the readout declares that split, nothing and the whole
        ``readout`` otherwise.
        """
        if declared(self, "split-readout") and not self.plus_one:
            return self.project, self.read
        return nn.Identity(), self.readout

    @declares("pooling", "pooled-prefixes")
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`."""
        weights = softmax_weights(self.attend(tokens), mask, gate, plus_one=self.plus_one)
        return self.readout(pool(weights, self.values(tokens)))

    @declares("prefix-sums", "pooled-prefixes")
    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        """See :meth:`Backbone.prefixes`; sums in float64, the rest in the model's own dtype."""
        if ks is None:
            ks = torch.arange(1, len(tokens) + 1, device=tokens.device)
        tokens = tokens[: int(ks.max())]
        project, read = self.split()
        projected = project(self.values(tokens))
        pooled = prefix_pool(self.attend(tokens), projected, ks, plus_one=self.plus_one)
        return read(pooled.to(tokens.dtype))

    @declares("mean-attention")
    def scores(self, tokens: Tensor) -> Tensor:
        """Attention logits before the softmax, averaged over the rows."""
        return self.attend(tokens).mean(dim=-1)
