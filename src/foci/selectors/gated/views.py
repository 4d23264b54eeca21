"""What the frozen classifier says of a gated bag: one view per way to gate a classifier."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones.base import Backbone, GateSite, declared
from foci.backbones.freezing import home
from foci.backbones.layers.softmax_pooling import pool, softmax_weights
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.models.transmil import TransMIL
from foci.errors import FociError
from foci.selectors.gated.contract import Tiles, View
from foci.selectors.gated.encoder_view import EncoderAttentionView


class FeatureView(View):
    r"""The paper's views :math:`f(z \odot X)`: all tiles stay in the bag, some of them empty.

    Args:
        backbone: The classifier.
    """

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Tokens for the selector, features for the gate."""
        return {**super().prepare(features), "features": features}

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Gate the features, then embed them again."""
        tokens = self.backbone.embed(gate.unsqueeze(-1) * tiles["features"])
        return self.backbone.aggregate(tokens, mask)


class TokenView(View):
    r"""The same where ``embed`` is homogeneous: :math:`\mathrm{embed}(z x) = z\,\mathrm{embed}(x)`.

    Gating the token *is* gating the feature, and no tile is embedded twice. Gradients are those of
    gated features too. At a gate of exactly 0 automatic differentiation of
    :math:`\mathrm{ReLU}(z W x)` gives 0 by convention, so a closed tile learns nothing from the
    view that it is not in.

    Args:
        backbone: The classifier, with ``capabilities.homogeneous``.
        dense: Give a closed tile the slope with which its gate opens instead.
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
        """The same where most tiles are closed: one empty tile stands for all of them.

        To a classifier that does not look at order, n equal tiles are one tile with n times its
        attention weight.
        """
        kept = gate > 0
        index = _kept_first(kept)
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


class AttentionView(View):
    """The gate multiplies the unnormalised attention weight: a hard gate *is* removal.

    Where no gradient is wanted of a hard gate, the tiles that it closes are left out altogether.

    Args:
        backbone: The classifier, with the gate site ``"attention"``.
    """

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Gate the attention."""
        tokens, kept = tiles["tokens"], mask & (gate > 0)
        if (torch.is_grad_enabled() and gate.requires_grad) or not _removes(gate, kept):
            return self.backbone.aggregate(tokens, mask, gate)
        index = _kept_first(kept)
        tokens = tokens.take_along_dim(index.unsqueeze(-1), dim=1)
        return self.backbone.aggregate(tokens, kept.gather(1, index))


class PooledAttentionView(View):
    """The same for a pooling classifier, whose attention logits no gate can change.

    Args:
        backbone: The classifier, with the ``aggregate`` of :class:`PooledBackbone`.
    """

    def __init__(self, backbone: PooledBackbone) -> None:
        self.backbone: PooledBackbone = backbone

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Tokens for the selector, attention logits and values for the pool."""
        tokens = self.backbone.embed(features)
        return {
            "tokens": tokens,
            "attention": self.backbone.attend(tokens),
            "values": self.backbone.values(tokens),
        }

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Pool with gated weights."""
        weights = softmax_weights(tiles["attention"], mask, gate)
        return self.backbone.readout(pool(weights, tiles["values"]))


def choose_site(backbone: Backbone, sites: Sequence[GateSite]) -> GateSite:
    """The first of the wanted gate sites that the classifier has."""
    offered = backbone.capabilities.gate_sites
    for site in sites:
        if site in offered:
            return site
    if not offered:
        raise FociError(
            f"backbone {backbone.architecture}",
            "passes no gradient back to its tiles, so no selector can be fitted",
            "use a ranking that needs none (norm, greedy, leave-one-out, random)",
        )
    raise FociError(
        f"backbone {backbone.architecture}",
        f"has no gate site {' or '.join(sites)}",
        f"choose a recipe with gate site {' or '.join(offered)}",
    )


def view_of(backbone: Backbone, site: GateSite, *, dense: bool = False) -> View:
    """The cheapest exact view of a classifier at a gate site.

    Args:
        backbone: The classifier.
        site: Where the gate acts.
        dense: See :class:`TokenView`.
    """
    if site == "feature":
        homogeneous = backbone.capabilities.homogeneous
        return TokenView(backbone, dense=dense) if homogeneous else FeatureView(backbone)
    if isinstance(backbone, PooledBackbone) and declared(backbone, "pooling"):
        return PooledAttentionView(backbone)
    if isinstance(backbone, TransMIL) and declared(backbone, "encoder"):
        return EncoderAttentionView(backbone)
    return AttentionView(backbone)


def _removes(gate: Tensor, kept: Tensor) -> bool:
    """Whether a gate is hard and leaves some tile to every bag."""
    return bool((gate[kept] == 1).all()) and bool(kept.any(dim=-1).all())


def _kept_first(kept: Tensor) -> Tensor:
    """Indices ``[B, n]`` of the kept tiles in bag order, n of the row that keeps most.

    A row that keeps fewer goes on with tiles that it does not keep.
    """
    most = int(kept.sum(dim=-1).max())
    return kept.long().argsort(dim=-1, descending=True, stable=True)[:, :most]


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
