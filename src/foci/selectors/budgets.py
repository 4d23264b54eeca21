"""Budgets: how many tiles a gate keeps, fixed, proportional or random."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt
from torch import Tensor


class _Budget(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fixed(_Budget):
    """K tiles in every bag (the paper: 32)."""

    kind: Literal["fixed"] = "fixed"
    k: PositiveInt = 32

    def draw(self, n_tiles: Tensor, generator: torch.Generator) -> Tensor:
        """K for one training step, ``[B]``."""
        return self.ladder(n_tiles)[0]

    def ladder(self, n_tiles: Tensor) -> list[Tensor]:
        """Values of K used in validation, each ``[B]``."""
        return [n_tiles.clamp(max=self.k)]


class Adaptive(_Budget):
    r"""A share of the bag's tiles: :math:`K_s = \max(K_{\min}, \lfloor \alpha N_s \rfloor)`.

    >>> [k.tolist() for k in Adaptive().ladder(torch.tensor([10, 100, 1024]))]
    [[10, 16, 30]]
    """

    kind: Literal["adaptive"] = "adaptive"
    alpha: Annotated[float, Field(gt=0, le=1)] = 0.03
    k_min: PositiveInt = 16

    def draw(self, n_tiles: Tensor, generator: torch.Generator) -> Tensor:
        """K for one training step, ``[B]``."""
        return self.ladder(n_tiles)[0]

    def ladder(self, n_tiles: Tensor) -> list[Tensor]:
        """Values of K used in validation, each ``[B]``."""
        share = torch.floor(self.alpha * n_tiles.double()).long()
        return [torch.minimum(share.clamp(min=self.k_min), n_tiles)]


class Octaves(_Budget):
    """K drawn at random with equal chances for 1, 2 to 3, 4 to 7, and so on up to ``k_max``.

    Drawn for every bag and step, so that the order of the kept tiles is trained too. At least one
    tile is dropped, wherever there are two.

    >>> [int(k) for k in Octaves(k_max=20).ladder(torch.tensor([1000]))]
    [1, 4, 16]
    """

    kind: Literal["octaves"] = "octaves"
    k_max: PositiveInt = 256

    def draw(self, n_tiles: Tensor, generator: torch.Generator) -> Tensor:
        """K for one training step, ``[B]``; its logarithm is uniform."""
        drawn = torch.rand(n_tiles.shape, generator=generator, dtype=torch.float64)
        k = torch.exp2(drawn * math.log2(self.k_max + 1)).long().clamp(max=self.k_max)
        return torch.minimum(k.to(n_tiles.device), (n_tiles - 1).clamp(min=1))

    def ladder(self, n_tiles: Tensor) -> list[Tensor]:
        """Powers of four up to ``k_max``, the same in every epoch."""
        powers = [4**i for i in range(self.k_max.bit_length()) if 4**i <= self.k_max]
        return [torch.minimum(n_tiles.clamp(max=k), (n_tiles - 1).clamp(min=1)) for k in powers]


Budget = Annotated[Fixed | Adaptive | Octaves, Field(discriminator="kind")]
