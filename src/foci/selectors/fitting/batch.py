"""A batch of padded bags, as the selector losses read it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from foci.selectors.gated.base import Tiles


@dataclass(frozen=True)
class GatedBatch:
    """A batch of padded bags.

    Attributes:
        tiles: What the gated backbone prepared, ``[B, N, ...]``.
        mask: ``[B, N]`` bool, True where a tile is real.
        coords: ``[B, N, 2]`` in the unit box; all 0 for a bag without coordinates.
        targets: ``[B]`` target classes.
        full: ``[B, C]`` full-bag logits.
    """

    tiles: Tiles
    mask: Tensor
    coords: Tensor
    targets: Tensor
    full: Tensor

    @property
    def n_tiles(self) -> Tensor:
        """Real tiles per bag, ``[B]``."""
        return self.mask.sum(dim=-1)
