"""Choose where the gate acts, and the cheapest exact way to compute it."""

from __future__ import annotations

from collections.abc import Sequence

from foci.backbones.base import Backbone, GateSite, declared
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.models.transmil import TransMIL
from foci.errors import FociError
from foci.selectors.gated.attention import AttentionGated, PooledAttentionGated
from foci.selectors.gated.base import GatedBackbone
from foci.selectors.gated.encoder import EncoderAttentionGated
from foci.selectors.gated.features import FeatureGated, TokenGated


def choose_site(backbone: Backbone, sites: Sequence[GateSite]) -> GateSite:
    """The first of the wanted gate sites that the backbone has."""
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


def gate_backbone(backbone: Backbone, site: GateSite, *, dense: bool = False) -> GatedBackbone:
    """The cheapest exact way to gate a backbone at a site.

    Args:
        backbone: The frozen classifier.
        site: Where the gate acts.
        dense: See :class:`~foci.selectors.gated.features.TokenGated`.
    """
    if site == "feature":
        homogeneous = backbone.capabilities.homogeneous
        return TokenGated(backbone, dense=dense) if homogeneous else FeatureGated(backbone)
    if isinstance(backbone, PooledBackbone) and declared(backbone, "pooling"):
        return PooledAttentionGated(backbone)
    if isinstance(backbone, TransMIL) and declared(backbone, "encoder"):
        return EncoderAttentionGated(backbone)
    return AttentionGated(backbone)
