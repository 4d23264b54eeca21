"""A frozen backbone under a gate per tile.

The work is split as in the backbone itself: ``prepare`` is everything that no gate can change, done
once per bag and kept; ``logits`` is the rest, done in every step for the kept and for the dropped
tiles. The full bag needs no gate and is computed once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor

from foci.backbones.base import Backbone

Tiles = Mapping[str, Tensor]
"""Per-tile tensors ``[..., N, ...]`` by name; ``"tokens"`` is always among them."""


class GatedBackbone(ABC):
    """Logits of a backbone whose tiles are gated; one subclass per way to compute them."""

    backbone: Backbone

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Everything that ``logits`` needs of the tiles, from features ``[..., N, D]``."""
        return {"tokens": self.backbone.embed(features)}

    @abstractmethod
    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Logits ``[B, C]`` of gated bags.

        Args:
            tiles: Output of ``prepare``, padded to ``[B, N, ...]``.
            mask: ``[B, N]`` bool, True where a tile is real.
            gate: ``[B, N]`` in [0, 1].
        """


def kept_first(kept: Tensor) -> Tensor:
    """Indices ``[B, n]`` of the kept tiles in bag order, n of the row that keeps most.

    A row that keeps fewer is filled up with tiles that it does not keep.
    """
    most = int(kept.sum(dim=-1).max())
    return kept.long().argsort(dim=-1, descending=True, stable=True)[:, :most]
