"""Differentiable gates from scores: straight-through top-K and Gumbel-sigmoid."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt
from torch import Tensor


def ranks(scores: Tensor, mask: Tensor) -> Tensor:
    """Rank ``[B, N]`` of every tile, 0 for the highest score; ties by tile index, padding last.

    >>> ranks(torch.tensor([[1.0, 3.0, 3.0, 9.0]]), torch.tensor([[True, True, True, False]]))
    tensor([[2, 0, 1, 3]])
    """
    order = scores.masked_fill(~mask, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    places = torch.arange(scores.shape[-1], device=scores.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, places)


def straight_through(
    scores: Tensor, mask: Tensor, k: Tensor, *, centred: bool = False, temperature: float = 1.0
) -> Tensor:
    r"""Hard top-K forward, sigmoid backward (the paper's FOCI-STE).

    .. math:: m_i = \mathbf{1}[a_i \in \mathrm{top}\text{-}K(a)], \qquad
       \tilde m_i = m_i + \sigma(u_i) - \mathrm{stopgrad}(\sigma(u_i)), \qquad
       \frac{\partial \tilde m_i}{\partial a_i} = \sigma'(u_i) / T

    with :math:`u_i = a_i / T`, or :math:`u_i = (a_i - a_{(K)}) / T` if centred, where the rank-K
    score :math:`a_{(K)}` counts as a constant: the surrogate is then steepest where a tile enters
    or leaves the top K, wherever the scores lie.

    Args:
        scores: ``[B, N]``.
        mask: ``[B, N]`` bool, True where a tile is real.
        k: ``[B]`` tiles to keep; a bag with fewer tiles keeps all.
        centred: Centre the surrogate on the rank-K score.
        temperature: T; the paper has 1.

    Returns:
        ``[B, N]``: exactly min(K, N) ones, zeros elsewhere and on padding.
    """
    keep = (ranks(scores, mask) < k[:, None]) & mask
    inputs = scores.masked_fill(~mask, 0.0)
    if centred:
        lowest = scores.detach().masked_fill(~keep, torch.inf).amin(dim=-1, keepdim=True)
        inputs = inputs - lowest
    surrogate = torch.sigmoid(inputs / temperature) * mask
    return keep.to(scores.dtype) + (surrogate - surrogate.detach())


def concrete(
    scores: Tensor, mask: Tensor, *, temperature: float, generator: torch.Generator | None
) -> Tensor:
    r"""Gumbel-sigmoid relaxation (the paper's FOCI-Soft).

    .. math:: z_i = \sigma\Big(\frac{a_i + \log\epsilon_i - \log(1 - \epsilon_i)}{T}\Big), \qquad
       \epsilon_i \sim \mathrm{Uniform}(0, 1)

    torch.distributions has this relaxation too, but draws from the global generator, and a resumed
    fit needs the draws of its own.

    Args:
        scores: ``[B, N]``.
        mask: ``[B, N]`` bool, True where a tile is real.
        temperature: T.
        generator: Draws the noise; None for its median, :math:`\epsilon_i = 1/2`.

    Returns:
        ``[B, N]`` in (0, 1), 0 on padding.
    """
    if generator is not None:
        noise = torch.rand(scores.shape, generator=generator, dtype=scores.dtype)
        noise = torch.logit(noise, eps=torch.finfo(scores.dtype).eps)
        scores = scores + noise.to(scores.device)
    return torch.sigmoid(scores.masked_fill(~mask, 0.0) / temperature) * mask


class Ste(BaseModel):
    """:func:`straight_through`; the budget is exact."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["ste"] = "ste"
    centred: bool = False
    temperature: PositiveFloat = 1.0

    def __call__(
        self, scores: Tensor, mask: Tensor, k: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Gate ``[B, N]``; the generator is not used."""
        return straight_through(scores, mask, k, centred=self.centred, temperature=self.temperature)


class Soft(BaseModel):
    """:func:`concrete`; the budget is only a penalty and K is not used."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["soft"] = "soft"
    temperature: PositiveFloat = 0.5

    def __call__(
        self, scores: Tensor, mask: Tensor, k: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Gate ``[B, N]``; without noise if there is no generator."""
        return concrete(scores, mask, temperature=self.temperature, generator=generator)


Gate = Annotated[Ste | Soft, Field(discriminator="kind")]


# Budgets: how many tiles a gate keeps, fixed, proportional or random.


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
