"""Gate the attention weights: a hard gate removes the tile."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.backbones.base import Backbone
from foci.backbones.layers.softmax_pooling import pool, softmax_weights
from foci.backbones.models._pooled import PooledBackbone
from foci.selectors.gated.base import GatedBackbone, Tiles, kept_first


class AttentionGated(GatedBackbone):
    """Gated attention weights, before normalisation: a hard gate *is* removal.

    Where a hard gate needs no gradient, the tiles that it closes are left out altogether.

    Args:
        backbone: With the gate site ``"attention"``.
    """

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Gate the attention."""
        tokens, kept = tiles["tokens"], mask & (gate > 0)
        if (torch.is_grad_enabled() and gate.requires_grad) or not _removes(gate, kept):
            return self.backbone.aggregate(tokens, mask, gate)
        index = kept_first(kept)
        tokens = tokens.take_along_dim(index.unsqueeze(-1), dim=1)
        return self.backbone.aggregate(tokens, kept.gather(1, index))


class PooledAttentionGated(GatedBackbone):
    """Gated softmax pooling: attention logits and values are computed once per bag.

    Args:
        backbone: With the ``aggregate`` of :class:`PooledBackbone`.
    """

    def __init__(self, backbone: PooledBackbone) -> None:
        self.backbone: PooledBackbone = backbone

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Tokens for the selector head, attention logits and values for the pooling."""
        tokens = self.backbone.embed(features)
        return {
            "tokens": tokens,
            "attention": self.backbone.attend(tokens),
            "values": self.backbone.values(tokens),
        }

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Pool with gated weights."""
        weights = softmax_weights(tiles["attention"], mask, gate, plus_one=self.backbone.plus_one)
        return self.backbone.readout(pool(weights, tiles["values"]))


def _removes(gate: Tensor, kept: Tensor) -> bool:
    """Whether the gate is hard and every bag keeps a tile."""
    return bool((gate[kept] == 1).all()) and bool(kept.any(dim=-1).all())
