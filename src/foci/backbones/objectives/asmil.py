"""How ASMIL steadies its attention: a slow anchor that the online attention must not leave."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.base import Backbone
from foci.backbones.layers.mlp import ema_update
from foci.backbones.objectives.base import Objective
from foci.errors import FociError

_EPSILON = 1e-8


def normalised_sigmoid(logits: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""Attention maps that no single tile can take over.

    .. math:: \mathrm{NSF}(z)_i = \frac{\sigma(z_i)}{\sum_j \sigma(z_j) + 10^{-8}}

    Args:
        logits: ``[..., N, R]``.
        mask: ``[..., N]`` bool, True where a tile is present.

    >>> normalised_sigmoid(torch.tensor([[0.0], [900.0]])).flatten()
    tensor([0.3333, 0.6667])
    """
    weights = torch.sigmoid(logits)
    if mask is not None:
        weights = weights.masked_fill(~mask.unsqueeze(-1), 0.0)
    return weights / (weights.sum(dim=-2, keepdim=True) + _EPSILON)


def anchor_divergence(
    online: Tensor, anchor: Tensor, mask: Tensor | None = None, *, temperature: float = 0.5
) -> Tensor:
    r"""Cross-entropy of the online map against the anchor's, averaged over rows and bags.

    .. math:: -\sum_i \mathrm{NSF}(b / T_a)_i \, \log \mathrm{softmax}(a)_i

    Args:
        online: Online logits a, ``[..., N, R]``.
        anchor: Anchor logits b of the same shape.
        mask: ``[..., N]`` bool, True where a tile is present.
        temperature: :math:`T_a`.
    """
    target = normalised_sigmoid(anchor / temperature, mask)
    if mask is not None:
        online = online.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    log_map = F.log_softmax(online, dim=-2)
    if mask is not None:
        log_map = log_map.masked_fill(~mask.unsqueeze(-1), 0.0)
    return -(target * log_map).sum(dim=-2).mean()


class AnchorObjective(Objective, ABC):
    r"""Slide loss plus the divergence from an anchor that trails the online attention.

    .. math:: L = \mathrm{CE}(\ell, y)
       + \beta\, \mathrm{CE}\big(\mathrm{NSF}(b/T_a),\, \mathrm{softmax}(a)\big), \qquad
       \theta_b \leftarrow m\,\theta_b + (1-m)\,\theta_a \text{ after every step}

    The anchor starts as a copy of the online attention and gets no gradient.

    Args:
        backbone: ASMIL in either form.
        beta: Weight of the divergence.
        temperature: :math:`T_a`.
        momentum: m.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        beta: float = 1.0,
        temperature: float = 0.5,
        momentum: float = 0.999,
    ) -> None:
        if beta < 0:
            raise FociError("beta", f"{beta} is negative", "choose 0 or more")
        if temperature <= 0:
            raise FociError("temperature", f"{temperature} is not positive", "choose e.g. 0.5")
        if not 0 <= momentum <= 1:
            raise FociError("momentum", f"{momentum} is not a share", "choose between 0 and 1")
        super().__init__(backbone)
        self.beta, self.temperature, self.momentum = beta, temperature, momentum

    @abstractmethod
    def pair(self) -> tuple[nn.Module, nn.Module]:
        """The anchor, and the online module that it trails."""

    def begin_stage(self, stage: str, total_steps: int) -> None:
        """Let the anchor start where the online attention stands."""
        anchor, online = self.pair()
        anchor.load_state_dict(online.state_dict())

    def after_step(self) -> None:
        """Move the anchor."""
        anchor, online = self.pair()
        ema_update(anchor, online, self.momentum)

    def loss(
        self, slide: Tensor, labels: Tensor, online: Tensor, anchor: Tensor, mask: Tensor
    ) -> Tensor:
        """Both terms, from slide logits ``[B, C]`` and attention logits ``[B, N, R]``."""
        divergence = anchor_divergence(online, anchor, mask, temperature=self.temperature)
        return self.named_terms(bag=F.cross_entropy(slide, labels), anchor=self.beta * divergence)
