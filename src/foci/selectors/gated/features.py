"""Gate the tile features: dropped tiles stay in the bag, with nothing in them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones.base import Backbone
from foci.backbones.freezing import home
from foci.selectors.gated.base import GatedBackbone, Tiles, kept_first


class FeatureGated(GatedBackbone):
    r"""Gated features :math:`f(z \odot X)`, as in the paper: embedded again in every step.

    Args:
        backbone: Any backbone.
    """

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Tokens for the selector head, features for the gate."""
        return {**super().prepare(features), "features": features}

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Gate the features and embed them again."""
        tokens = self.backbone.embed(gate.unsqueeze(-1) * tiles["features"])
        return self.backbone.aggregate(tokens, mask)


class TokenGated(GatedBackbone):
    r"""Gated tokens, where :math:`\mathrm{embed}(z x) = z\,\mathrm{embed}(x)`.

    Gating the token *is* gating the feature, and no tile is embedded twice. Gradients are those of
    gated features too. At a gate of exactly 0 automatic differentiation of
    :math:`\mathrm{ReLU}(z W x)` gives 0 by convention, so a tile with a gate of 0 has no
    gradient.

    Args:
        backbone: With ``capabilities.homogeneous``.
        dense: Give a tile with gate 0 the one-sided slope, as its gate opens, instead.
    """

    def __init__(self, backbone: Backbone, *, dense: bool = False) -> None:
        self.backbone = backbone
        self.dense = dense or not _flat_at_zero(backbone)
        self.closed_are_alike = not self.dense and _weighs_equal_tiles(backbone)

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Gate the tokens."""
        tokens = tiles["tokens"]
        if not self.dense:
            gate = torch.where(gate > 0, gate, gate.detach())
        if self.closed_are_alike and 2 * int((gate > 0).sum(dim=-1).max()) < gate.shape[-1]:
            return self._few(tokens, mask, gate)
        return self.backbone.aggregate(gate.unsqueeze(-1) * tokens, mask)

    def _few(self, tokens: Tensor, mask: Tensor, gate: Tensor) -> Tensor:
        """The same where most gates are 0: one empty tile stands for all empty tiles.

        To an order-free backbone, n equal tiles are one tile with n times its
        attention weight.
        """
        kept = gate > 0
        index = kept_first(kept)
        chosen = (
            tokens.take_along_dim(index.unsqueeze(-1), dim=1) * gate.gather(1, index)[..., None]
        )
        present = kept.gather(1, index)
        alike = (mask & ~kept).sum(dim=-1, keepdim=True)
        return self.backbone.aggregate(
            F.pad(chosen, (0, 0, 0, 1)),
            torch.cat([present, alike > 0], dim=1),
            torch.cat([present.to(tokens.dtype), alike.to(tokens.dtype)], dim=1),
        )


def _flat_at_zero(backbone: Backbone) -> bool:
    """Whether ``embed`` passes no gradient to a feature that is 0, as a ReLU does not."""
    device, dtype = home(backbone)
    gate = torch.zeros(1, 1, device=device, dtype=dtype, requires_grad=True)
    ray = torch.linspace(-1, 2, backbone.d_in, device=device, dtype=dtype)
    with torch.enable_grad():
        tokens = backbone.embed(gate * ray)
    if not tokens.requires_grad:
        return True
    (slope,) = torch.autograd.grad(tokens.sum(), gate, allow_unused=True)
    return slope is None or not bool(slope.any())


@torch.no_grad()
def _weighs_equal_tiles(backbone: Backbone) -> bool:
    """Whether three equal tiles are one tile with three times its attention weight."""
    can = backbone.capabilities
    if not (can.order_free and "attention" in can.gate_sites):
        return False
    device, dtype = home(backbone)
    tokens = torch.zeros(1, 4, backbone.d_token, device=device, dtype=dtype)
    tokens[0, 0] = torch.linspace(-1, 2, backbone.d_token)
    weights = torch.tensor([[1.0, 3.0]], device=device, dtype=dtype)
    short = backbone.aggregate(tokens[:, :2], None, weights)
    return bool(torch.allclose(short, backbone.aggregate(tokens), rtol=1e-3, atol=1e-4))
