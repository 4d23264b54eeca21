"""Classifiers whose tiles meet only in a softmax-weighted sum."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from foci.backbones.base import Backbone, Capabilities
from foci.backbones.layers.mlp import split_head
from foci.backbones.layers.softmax_pooling import pool, prefix_pool, softmax_weights


class PooledBackbone(Backbone):
    r"""``logits = readout( sum_i softmax(attend(tokens))_i * values(tokens)_i )``.

    A subclass says how tiles are scored (``attend``), what is summed (``values``) and what
    happens to the sum (``readout``); the full bag, padded batches, gates and the closed form over
    prefixes all follow from these three.

    Where a readout begins with an affine map, that map may as well come first, because the
    weights of a set of tiles add up to 1:

    .. math:: A \sum_i w_i v_i + b = \sum_i w_i\,(A v_i + b)

    One set of tiles is cheapest when it is pooled first. Many sets of the same tiles are cheapest
    when every tile is projected once and the sums run over fewer numbers. A subclass may therefore
    split its readout into ``project`` and ``read``; one that replaces ``readout`` alone gives up
    the split of its parents.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "readout" in vars(cls) and "read" not in vars(cls):
            cls.project = PooledBackbone.project  # type: ignore[method-assign]
            cls.read = PooledBackbone.read  # type: ignore[method-assign]

    @abstractmethod
    def attend(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to attention logits ``[..., N, R]``."""

    def values(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to what is pooled, ``[..., N, 1 or R, dv]``."""
        return tokens.unsqueeze(-2)

    @abstractmethod
    def readout(self, pooled: Tensor) -> Tensor:
        """Pooled values ``[..., R, dv]`` to logits ``[..., C]``."""

    def project(self, values: Tensor) -> Tensor:
        """Values ``[..., 1 or R, dv]`` through the affine start of the readout, if it has one."""
        return values

    def read(self, projected: Tensor) -> Tensor:
        """The rest: ``read(pool(weights, project(values))) == readout(pool(weights, values))``."""
        return self.readout(projected)

    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`."""
        weights = softmax_weights(self.attend(tokens), mask, gate)
        return self.readout(pool(weights, self.values(tokens)))

    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        """See :meth:`Backbone.prefixes`; sums in float64, the rest in the model's own dtype."""
        if ks is None:
            ks = torch.arange(1, len(tokens) + 1, device=tokens.device)
        tokens = tokens[: int(ks.max())]
        projected = self.project(self.values(tokens))
        return self.read(prefix_pool(self.attend(tokens), projected, ks).to(tokens.dtype))

    def scores(self, tokens: Tensor) -> Tensor:
        """Attention logits before the softmax, averaged over the rows."""
        return self.attend(tokens).mean(dim=-1)


class ProjectedPool(PooledBackbone):
    """A pooling classifier whose tokens are its projected tiles.

    Attributes:
        projection: Tile by tile.
        homogeneous: Whether the projection is; see :class:`Capabilities`.
    """

    projection: nn.Module
    homogeneous: bool

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


class AttentionPool(ProjectedPool):
    r"""Classifies the attention-weighted mean of the projected tiles.

    .. math:: h_i = \mathrm{projection}(x_i), \quad a_i = \mathrm{attention}(h_i), \quad
       \ell = \mathrm{head}\Big(\sum_i \mathrm{softmax}(a)_i\, h_i\Big)

    A subclass builds the three modules.
    """

    attention: nn.Module
    head: nn.Module

    def attend(self, tokens: Tensor) -> Tensor:
        """Attention logits."""
        logits: Tensor = self.attention(tokens)
        return logits

    def readout(self, pooled: Tensor) -> Tensor:
        """Head on the one pooled token."""
        logits: Tensor = self.head(pooled.squeeze(-2))
        return logits

    def project(self, values: Tensor) -> Tensor:
        """First layer of the head."""
        projected: Tensor = split_head(self.head)[0](values)
        return projected

    def read(self, projected: Tensor) -> Tensor:
        """The layers of the head after the first."""
        logits: Tensor = split_head(self.head)[1](projected.squeeze(-2))
        return logits
