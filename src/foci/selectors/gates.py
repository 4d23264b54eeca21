"""Gates turn scores into kept and dropped tiles; budgets say how many tiles are kept.

Scores and masks (True where a tile is real) are ``[B, N]``, a gate is ``[B, N]`` in [0, 1] and 0 on
padding, numbers of tiles and K are ``[B]``.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt
from torch import Tensor


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def ranks(scores: Tensor, mask: Tensor) -> Tensor:
    """Rank ``[B, N]`` of every tile, 0 for the highest score; ties by tile index, padding last.

    >>> ranks(torch.tensor([[1.0, 3.0, 3.0, 9.0]]), torch.tensor([[True, True, True, False]]))
    tensor([[2, 0, 1, 3]])
    """
    order = scores.masked_fill(~mask, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    places = torch.arange(scores.shape[-1], device=scores.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, places)


class Ste(_Settings):
    r"""Straight-through top-K: hard forward, sigmoid backward (the paper's FOCI-STE).

    .. math:: m_i = \mathbf{1}[a_i \in \mathrm{top}\text{-}K(a)], \qquad
       \tilde m_i = m_i + \sigma(u_i) - \mathrm{stopgrad}(\sigma(u_i)), \qquad
       \frac{\partial \tilde m_i}{\partial a_i} = \sigma'(u_i) / T

    with :math:`u_i = a_i / T`, or :math:`u_i = (a_i - a_{(K)}) / T` if centred, where the rank-K
    score :math:`a_{(K)}` counts as a constant: the surrogate is then steepest where a tile enters
    or leaves the top K, wherever the scores lie. The paper has T = 1.
    """

    kind: Literal["ste"] = "ste"
    centred: bool = False
    temperature: PositiveFloat = 1.0

    def __call__(
        self, scores: Tensor, mask: Tensor, k: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Exactly min(K, N) ones, zeros elsewhere; the generator is not used."""
        keep = (ranks(scores, mask) < k[:, None]) & mask
        inputs = scores.masked_fill(~mask, 0.0)
        if self.centred:
            lowest = scores.detach().masked_fill(~keep, torch.inf).amin(dim=-1, keepdim=True)
            inputs = inputs - lowest
        surrogate = torch.sigmoid(inputs / self.temperature) * mask
        return keep.to(scores.dtype) + (surrogate - surrogate.detach())


class Soft(_Settings):
    r"""Gumbel-sigmoid relaxation (the paper's FOCI-Soft): the budget is only a penalty.

    .. math:: z_i = \sigma\Big(\frac{a_i + \log\epsilon_i - \log(1 - \epsilon_i)}{T}\Big), \qquad
       \epsilon_i \sim \mathrm{Uniform}(0, 1)

    torch.distributions has this relaxation too, but draws from the global generator, and a resumed
    fit needs the draws of its own.
    """

    kind: Literal["soft"] = "soft"
    temperature: PositiveFloat = 0.5

    def __call__(
        self, scores: Tensor, mask: Tensor, k: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        r"""Gates in (0, 1); without a generator at the median, :math:`\epsilon_i = 1/2`."""
        if generator is not None:
            noise = torch.rand(scores.shape, generator=generator, dtype=scores.dtype)
            noise = torch.logit(noise, eps=torch.finfo(scores.dtype).eps)
            scores = scores + noise.to(scores.device)
        return torch.sigmoid(scores.masked_fill(~mask, 0.0) / self.temperature) * mask


Gate = Annotated[Ste | Soft, Field(discriminator="kind")]


class Fixed(_Settings):
    """K tiles in every bag (the paper: 32)."""

    kind: Literal["fixed"] = "fixed"
    k: PositiveInt = 32

    def draw(self, n_tiles: Tensor, generator: torch.Generator) -> Tensor:
        """K for one training step."""
        return self.ladder(n_tiles)[0]

    def ladder(self, n_tiles: Tensor) -> list[Tensor]:
        """Values of K used in validation, the same in every epoch."""
        return [n_tiles.clamp(max=self.k)]


class Adaptive(_Settings):
    r"""A share of the bag's tiles: :math:`K_s = \max(K_{\min}, \lfloor \alpha N_s \rfloor)`.

    >>> [k.tolist() for k in Adaptive().ladder(torch.tensor([10, 100, 1024]))]
    [[10, 16, 30]]
    """

    kind: Literal["adaptive"] = "adaptive"
    alpha: Annotated[float, Field(gt=0, le=1)] = 0.03
    k_min: PositiveInt = 16

    def draw(self, n_tiles: Tensor, generator: torch.Generator) -> Tensor:
        """K for one training step."""
        return self.ladder(n_tiles)[0]

    def ladder(self, n_tiles: Tensor) -> list[Tensor]:
        """Values of K used in validation, the same in every epoch."""
        share = torch.floor(self.alpha * n_tiles.double()).long()
        return [torch.minimum(share.clamp(min=self.k_min), n_tiles)]


class Octaves(_Settings):
    """K drawn at random with equal chances for 1, 2 to 3, 4 to 7, and so on up to ``k_max``.

    Drawn for every bag and step, so that the order of the kept tiles is trained too. At least one
    tile is dropped, wherever there are two.

    >>> [int(k) for k in Octaves(k_max=20).ladder(torch.tensor([1000]))]
    [1, 4, 16]
    """

    kind: Literal["octaves"] = "octaves"
    k_max: PositiveInt = 256

    def draw(self, n_tiles: Tensor, generator: torch.Generator) -> Tensor:
        """K for one training step; its logarithm is uniform."""
        drawn = torch.rand(n_tiles.shape, generator=generator, dtype=torch.float64)
        k = torch.exp2(drawn * math.log2(self.k_max + 1)).long().clamp(max=self.k_max)
        return torch.minimum(k.to(n_tiles.device), (n_tiles - 1).clamp(min=1))

    def ladder(self, n_tiles: Tensor) -> list[Tensor]:
        """Powers of four up to ``k_max``."""
        powers = [4**i for i in range(self.k_max.bit_length()) if 4**i <= self.k_max]
        return [torch.minimum(n_tiles.clamp(max=k), (n_tiles - 1).clamp(min=1)) for k in powers]


Budget = Annotated[Fixed | Adaptive | Octaves, Field(discriminator="kind")]
