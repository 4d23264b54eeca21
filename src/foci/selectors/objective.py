r"""The objective of a fit: gates, budgets, and a weighted sum of losses.

Gates turn scores into kept and dropped tiles; budgets say how many tiles K are kept; the losses
judge what the classifier says of both. :math:`p_y(\ell) = \mathrm{softmax}(\ell)_y` is the
probability of the target class.

Scores, gates in [0, 1] (0 on padding) and masks (True where a tile is real) are ``[B, N]``, logits
``[B, C]``; targets, numbers of tiles, K and every loss are ``[B]``, one value per bag.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from foci.selectors.gated import GatedBackbone, Tiles


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


def target_probability(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Probability of the target class, :math:`p_y(\ell)`."""
    return torch.softmax(logits, dim=-1).gather(-1, targets[:, None]).squeeze(-1)


def sufficiency(keep: Tensor, targets: Tensor) -> Tensor:
    r"""Cross-entropy of the kept tiles: :math:`-\log p_y(\ell_\mathrm{keep})`."""
    return F.cross_entropy(keep, targets, reduction="none")


def hinge(keep: Tensor, targets: Tensor, tau: float) -> Tensor:
    r"""Hinge loss of the kept tiles: :math:`\max(\tau - p_y(\ell_\mathrm{keep}), 0)`."""
    return F.relu(tau - target_probability(keep, targets))


def exclusion(drop: Tensor, targets: Tensor, beta: float, has_drop: Tensor) -> Tensor:
    r"""Hinge loss of the dropped tiles: :math:`\max(p_y(\ell_\mathrm{drop}) - \beta, 0)`.

    It is 0 for a bag that keeps all its tiles, where ``has_drop`` is False.
    """
    loss = F.relu(target_probability(drop, targets) - beta)
    return torch.where(has_drop, loss, torch.zeros_like(loss))


def flip(drop: Tensor, targets: Tensor, gap: float, has_drop: Tensor) -> Tensor:
    r"""Hinge loss on the decision of the dropped tiles: they should no longer predict the target.

    .. math:: \max\big(\ell_y - \max_{c \ne y} \ell_c + g,\ 0\big)

    with the gap g by which another class should lead. Unlike :func:`exclusion` it has the same
    slope however sure the dropped tiles still are. It is 0 for a bag that keeps all its tiles.

    >>> flip(torch.tensor([[3.0, 1.0, -2.0]]), torch.tensor([0]), 1.0, torch.tensor([True]))
    tensor([3.])
    """
    own = torch.zeros_like(drop, dtype=torch.bool).scatter(-1, targets[:, None], True)
    rival = drop.masked_fill(own, -torch.inf).amax(dim=-1)
    loss = F.relu(drop.gather(-1, targets[:, None]).squeeze(-1) - rival + gap)
    return torch.where(has_drop, loss, torch.zeros_like(loss))


def contiguity(gate: Tensor, coords: Tensor) -> Tensor:
    r"""Spatial variance of the kept tiles.

    .. math:: \frac{\sum_i z_i \lVert c_i - \mu \rVert^2}{\sum_i z_i}, \qquad
       \mu = \frac{\sum_i z_i c_i}{\sum_i z_i}

    Coordinates ``[B, N, 2]`` are those of :func:`unit_box`; in raw pixels this term would outweigh
    all others.

    >>> two_of_three = torch.tensor([[1.0, 1.0, 0.0]])
    >>> contiguity(two_of_three, torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.5, 0.9]]]))
    tensor([0.2500])
    """
    weights = gate.unsqueeze(-1)
    total = gate.sum(dim=-1).clamp_min(torch.finfo(gate.dtype).tiny)
    centre = (weights * coords).sum(dim=1) / total[:, None]
    distance = (coords - centre[:, None]).square().sum(dim=-1)
    return (gate * distance).sum(dim=-1) / total


def entropy(gate: Tensor, mask: Tensor) -> Tensor:
    r"""Mean binary entropy of a soft gate.

    .. math:: H(z) = -\frac{1}{N} \sum_i \big[z_i \log z_i + (1 - z_i) \log(1 - z_i)\big]
    """
    least = torch.finfo(gate.dtype).eps
    z = gate.clamp(least, 1 - least)
    per_tile: Tensor = torch.special.entr(z) + torch.special.entr(1 - z)
    return (per_tile * mask).sum(dim=-1) / mask.sum(dim=-1)


def unit_box(coords: Tensor) -> Tensor:
    """Coordinates ``[N, 2]`` of one bag, shifted to 0 and scaled to a longest side of 1.

    The result does not depend on the unit: pixels, micrometres or grid indices.

    >>> unit_box(torch.tensor([[1000, 500], [1512, 500], [1000, 756]]))
    tensor([[0.0000, 0.0000],
            [1.0000, 0.0000],
            [0.0000, 0.5000]])
    """
    corner = coords.amin(dim=0)
    extent = (coords - corner).amax().double()
    return ((coords - corner).double() / extent.clamp_min(1e-12)).float()


@dataclass(frozen=True)
class GatedBatch:
    """A batch of padded bags, with targets ``[B]``, full-bag logits ``[B, C]`` and a mask.

    ``tiles`` is what the gated backbone prepared, ``[B, N, ...]``; ``coords`` are ``[B, N, 2]`` in
    the unit box, all 0 for a bag without coordinates.
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


class Weights(_Settings):
    r"""Weights :math:`\lambda` of the losses, and two thresholds; the defaults are the paper's.

    Attributes:
        suff: Cross-entropy of the kept tiles.
        hinge: Confidence of the kept tiles.
        excl: Confidence of the dropped tiles.
        contig: Spread of the kept tiles.
        budget: Sum of the gates, :math:`\sum_i z_i`: K under the hard gate, where only its gradient
            matters, which lowers every score.
        entropy: Entropy of a soft gate (0.1 in FOCI-Soft).
        flip: Decision of the dropped tiles; see :func:`flip`.
        tau: Confidence that the kept tiles should reach.
        beta: Confidence that the dropped tiles may have.
        gap: Lead of another class that the dropped tiles should have, in logits.
    """

    suff: NonNegativeFloat = 0.5
    hinge: NonNegativeFloat = 1.0
    excl: NonNegativeFloat = 0.5
    contig: NonNegativeFloat = 0.01
    budget: NonNegativeFloat = 5e-3
    entropy: NonNegativeFloat = 0.0
    flip: NonNegativeFloat = 0.0
    tau: Annotated[float, Field(gt=0, lt=1)] = 0.9
    beta: Annotated[float, Field(gt=0, lt=1)] = 0.2
    gap: NonNegativeFloat = 1.0

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the losses with a weight above 0."""
        names = ("suff", "hinge", "excl", "contig", "budget", "entropy", "flip")
        return tuple(name for name in names if getattr(self, name) > 0)


def loss_terms(
    batch: GatedBatch,
    scores: Tensor,
    gated: GatedBackbone,
    gate_rule: Gate,
    k: Tensor,
    weights: Weights,
    generator: torch.Generator | None = None,
) -> dict[str, Tensor]:
    r"""Every loss before its weight, averaged over the bags, and ``full`` for monitoring.

    A bag that keeps all its tiles drops none. The full bag then stands in for the dropped tiles,
    which keeps every gradient finite, and its exclusion is 0.

    The rule turns scores ``[B, N]`` into gates that keep k tiles ``[B]``, with noise from the
    generator if it is soft. Of the weights only thresholds and which terms are wanted play a part.
    """
    mask, targets = batch.mask, batch.targets
    gate = gate_rule(scores, mask, k, generator)
    rest = (1 - gate) * mask
    has_drop = (rest > 0).any(dim=-1)
    keep = gated.logits(batch.tiles, mask, gate)
    drop = gated.logits(batch.tiles, mask, torch.where(has_drop[:, None], rest, mask.to(rest)))
    terms = {
        "suff": sufficiency(keep, targets),
        "hinge": hinge(keep, targets, weights.tau),
        "excl": exclusion(drop, targets, weights.beta, has_drop),
        "contig": contiguity(gate, batch.coords),
        "budget": gate.sum(dim=-1),
        "full": sufficiency(batch.full, targets),
    }
    if weights.entropy > 0:
        terms["entropy"] = entropy(gate, mask)
    if weights.flip > 0:
        terms["flip"] = flip(drop, targets, weights.gap, has_drop)
    return {name: values.mean() for name, values in terms.items()}


def total(terms: dict[str, Tensor], weights: Weights) -> Tensor:
    r"""The selector objective :math:`\sum_j \lambda_j \mathcal{L}_j`; ``full`` is only monitored.

    A term of weight 0 is left out, so that it costs no gradient. If all are 0, so is the
    objective.
    """
    chosen = [
        getattr(weights, name) * value for name, value in terms.items() if name in weights.active
    ]
    return torch.stack(chosen).sum() if chosen else torch.zeros_like(terms["budget"])
