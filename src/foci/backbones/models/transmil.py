"""TransMIL as the paper uses it: a plain transformer encoder over a set of tiles."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.base import Backbone, Capabilities, declares
from foci.backbones.layers.encoder import EncoderLayer
from foci.backbones.layers.mlp import head, projection
from foci.backbones.registry import architecture, preset
from foci.errors import FociError

Proxy = Literal["after_norm", "before_norm"]


@architecture("transmil")
class TransMIL(Backbone):
    r"""CLS token and tiles through L encoder layers, head on the CLS token.

    .. math:: h_i = \mathrm{ReLU}(W x_i), \quad
       H = \mathrm{Encoder}_L([c; h_1 \dots h_N]), \quad
       \ell = \mathrm{head}(\mathrm{LN}(H)_0)

    Without a position encoding the tiles are a set, and masking a tile's key in every layer is
    the same as removing the tile. Trained with cross-entropy. It has no tile score of its own;
    the paper's documented proxy is :math:`\langle \mathrm{LN}(H)_i, \mathrm{LN}(H)_0 \rangle`.
    The authors' own architecture is
    :class:`~foci.backbones.models.transmil_nystrom.TransMILNystrom`.

    Attributes:
        cls: The learned CLS token, ``[d]``.
        layers: The encoder layers.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width.
        heads: Attention heads, each d / heads wide.
        depth: Number of layers L.
        hidden: Width of the feed-forward blocks.
        head_hidden: Width of a two-layer head; None for a linear one.
        projection_bias: Whether the projection has a bias.
        activation: Of the feed-forward blocks, ``"gelu"`` or ``"relu"``.
        proxy: Whether the proxy compares tokens after or before the final LayerNorm.
        dropout: At the end of every block, while training.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        heads: int,
        depth: int,
        hidden: int,
        head_hidden: int | None = None,
        projection_bias: bool = True,
        activation: str = "gelu",
        proxy: Proxy = "after_norm",
        dropout: float = 0.0,
    ) -> None:
        if d % heads:
            raise FociError("transmil", f"d={d} is not a multiple of heads={heads}", "change one")
        if proxy not in ("after_norm", "before_norm"):
            raise FociError("transmil", f"has no proxy {proxy!r}", "use after_norm or before_norm")
        if activation not in ("gelu", "relu"):
            raise FociError("transmil", f"has no activation {activation!r}", "use gelu or relu")
        super().__init__(d_in, n_classes, d_token=d)
        self.proxy, self.homogeneous = proxy, not projection_bias
        self.projection = projection(d_in, d, bias=projection_bias)
        self.cls = nn.Parameter(0.02 * torch.randn(d))
        self.layers = nn.ModuleList(
            EncoderLayer(d, heads, hidden, activation, dropout) for _ in range(depth)
        )
        self.norm = nn.LayerNorm(d)
        self.head = head(d, n_classes, head_hidden)

    @property
    def capabilities(self) -> Capabilities:
        """Order-free, no closed form, proxy score."""
        return Capabilities(
            order_free=True,
            closed_form=False,
            score="proxy",
            gate_sites=("feature", "attention"),
            homogeneous=self.homogeneous,
        )

    def embed(self, x: Tensor) -> Tensor:
        """Projection."""
        tokens: Tensor = self.projection(x)
        return tokens

    @declares("encoder")
    def encode(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        gate: Tensor | None = None,
        n_queries: int | None = None,
    ) -> Tensor:
        """Tokens ``[B, N, d]`` to ``[B, 1 + N, d]`` before the final LayerNorm, CLS first.

        Args:
            tokens: Embedded tiles.
            mask: ``[B, N]`` bool, True where a tile is present.
            gate: ``[B, N]``, multiplies a tile's unnormalised attention weight in every layer.
            n_queries: Number of leading tokens to compute in the last layer; None for all.
        """
        hidden = torch.cat([self.cls.expand(len(tokens), 1, -1), tokens], dim=1)
        mask = None if mask is None else F.pad(mask, (1, 0), value=True)
        gate = None if gate is None else F.pad(gate, (1, 0), value=1.0)
        last = len(self.layers) - 1
        for number, layer in enumerate(self.layers):
            hidden = layer(hidden, mask, gate, n_queries if number == last else None)
        return hidden

    def readout(self, cls: Tensor) -> Tensor:
        """Encoded CLS tokens ``[..., d]`` to logits ``[..., C]``."""
        logits: Tensor = self.head(self.norm(cls))
        return logits

    @declares("encoder")
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`."""
        return self.readout(self.encode(tokens, mask, gate, n_queries=1)[:, 0])

    def scores(self, tokens: Tensor) -> Tensor:
        """Proxy: dot product of tile and CLS token after the last layer."""
        hidden = self.encode(tokens.unsqueeze(0))[0]
        if self.proxy == "after_norm":
            hidden = self.norm(hidden)
        return hidden[1:] @ hidden[0]


preset(
    "transmil",
    "paper",
    TransMIL,
    d=512,
    heads=8,
    depth=4,
    hidden=2048,
    head_hidden=256,
    projection_bias=False,
)
