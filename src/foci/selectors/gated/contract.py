"""What a view is.

A view splits the work like the classifier itself: ``prepare`` is everything that no gate can
change, done once per bag and kept; ``logits`` is the rest, done in every step for the keep and the
drop view. The full view needs no gate and is computed once per bag.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor

from foci.backbones.base import Backbone

Tiles = Mapping[str, Tensor]
"""Per-tile tensors ``[..., N, ...]`` by name; ``"tokens"`` is always among them."""


class View(ABC):
    """One way to gate one classifier."""

    backbone: Backbone

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Features ``[..., N, D]`` to what ``logits`` needs of every tile."""
        return {"tokens": self.backbone.embed(features)}

    @abstractmethod
    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Logits ``[B, C]`` of bags whose tiles are gated.

        Args:
            tiles: What ``prepare`` gave, padded to ``[B, N, ...]``.
            mask: ``[B, N]`` bool, True where a tile is real.
            gate: ``[B, N]`` in [0, 1].
        """
