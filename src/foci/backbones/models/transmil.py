"""TransMIL as the paper uses it, a plain transformer over a set of tiles, and as published."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.attention import head, projection
from foci.backbones.base import Backbone, Capabilities, architecture, declares, preset
from foci.backbones.models._pooled import POOLING, OrderedBackbone
from foci.backbones.transformer import PPEG, EncoderLayer, NystromAttention, NystromLayer, squared
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
    The authors' own architecture is :class:`TransMILNystrom`.

    Args:
        d: Token width.
        heads: Attention heads, each d / heads wide.
        depth: Number of layers L.
        hidden: Width of the feed-forward blocks; None for layers without one.
        head_hidden: Width of a two-layer head; None for a linear one.
        projection_bias, projection_activation, projection_layers: See
            :func:`~foci.backbones.attention.projection`.
        activation: Of the feed-forward blocks, ``"gelu"`` or ``"relu"``.
        activate_twice: See :class:`~foci.backbones.transformer.EncoderLayer`.
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
        hidden: int | None,
        head_hidden: int | None = None,
        projection_bias: bool = True,
        projection_activation: str = "relu",
        projection_layers: int = 1,
        activation: str = "gelu",
        activate_twice: bool = False,
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
        self.proxy = proxy
        self.homogeneous = not projection_bias and projection_activation == "relu"
        self.projection = projection(
            d_in,
            d,
            bias=projection_bias,
            activation=projection_activation,
            layers=projection_layers,
        )
        self.cls = nn.Parameter(0.02 * torch.randn(d))
        self.layers = nn.ModuleList(
            EncoderLayer(d, heads, hidden, activation, dropout, activate_twice)
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(d)
        self.head = head(d, n_classes, head_hidden)

    @property
    def capabilities(self) -> Capabilities:
        """As attention pooling, but without a closed form, and the tile score is a proxy."""
        return replace(POOLING, closed_form=False, score="proxy", homogeneous=self.homogeneous)

    @declares("encoder")
    def encode(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        gate: Tensor | None = None,
        n_queries: int | None = None,
    ) -> Tensor:
        """Tokens ``[B, N, d]`` to ``[B, 1 + N, d]`` before the final LayerNorm, CLS first.

        The gate acts in every layer; the last one computes ``n_queries`` leading tokens (None for
        all).
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


@architecture("transmil-nystrom")
class TransMILNystrom(OrderedBackbone):
    r"""Two Nyström layers around a position encoding, read out at the CLS token (Shao et al. 2021).

    .. math:: H_0 = [c;\, \mathrm{square}(\mathrm{ReLU}(W X + b))], \quad
       H_1 = L_1(H_0), \quad H_2 = L_2([H_{1,0};\, \mathrm{PPEG}(H_{1,1:})]), \quad
       \ell = W_o\,\mathrm{LN}(H_2)_0 + b_o

    Squaring repeats the first tiles until their number is a square; they count twice. The model
    depends on the order of the tiles and has no mask: hidden tiles are not forwarded, and the
    others keep their bag order. Trained with cross-entropy. It has no tile score;
    the proxy is :math:`\langle \mathrm{LN}(H_2)_i, \mathrm{LN}(H_2)_0 \rangle`.

    Args:
        heads: Attention heads, each d / heads wide.
        landmarks: Nyström landmarks; None for d / 2.
        dropout: After each attention block, while training.
        aligned: False for weights trained with version 0.0.9 (or older) of the Nyström package,
            which the authors' repository pins; see
            :class:`~foci.backbones.transformer.NystromAttention`. Weights do not tell which one.
        projection_activation, projection_layers: See
            :func:`~foci.backbones.attention.projection`.
        head_layers: Hidden layers of the head, each d wide with a ReLU; None for a linear one.
    """

    tile_score = "proxy"

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        heads: int,
        landmarks: int | None = None,
        dropout: float = 0.0,
        aligned: bool = True,
        projection_activation: str = "relu",
        projection_layers: int = 1,
        head_layers: int | None = None,
    ) -> None:
        if d % heads:
            what = f"d={d} is not a multiple of heads={heads}"
            raise FociError("transmil-nystrom", what, "change one")
        super().__init__(d_in, n_classes, d_token=d)
        landmarks = d // 2 if landmarks is None else landmarks
        self.projection = projection(
            d_in, d, bias=True, activation=projection_activation, layers=projection_layers
        )
        self.cls = nn.Parameter(torch.randn(1, 1, d))
        settings = (d, heads, d // heads, landmarks, dropout, aligned)
        self.layer1 = NystromLayer(NystromAttention(*settings))
        self.position = PPEG(d)
        self.layer2 = NystromLayer(NystromAttention(*settings))
        self.norm = nn.LayerNorm(d)
        self.head = head(d, n_classes, d if head_layers else None, head_layers or 0)

    @declares("shared-tokens")
    def share(self, tokens: Tensor) -> Tensor:
        """See :meth:`OrderedBackbone.share`: queries, keys and values of the first layer."""
        return self.layer1.share(tokens)

    @declares("shared-tokens")
    def encode(self, tokens: Tensor, rows: int | None = None) -> Tensor:
        """Tokens ``[B, n, d]`` to ``[B, 1 + s*s, d]`` after the final LayerNorm, CLS first.

        Or to the first ``rows`` of them: the last layer computes no others. What :meth:`share`
        gives may stand for the tokens.
        """
        if tokens.shape[-1] == self.d_token:
            tokens = self.share(tokens)
        tiles = squared(tokens)
        cls = self.share(self.cls).expand(len(tiles), -1, -1)
        hidden = self.layer1.shared(torch.cat([cls, tiles], dim=1))
        hidden = torch.cat([hidden[:, :1], self.position(hidden[:, 1:])], dim=1)
        encoded: Tensor = self.norm(self.layer2(hidden, rows))
        return encoded

    @declares("shared-tokens")
    def classify(self, tokens: Tensor) -> Tensor:
        """Head on the CLS token."""
        logits: Tensor = self.head(self.encode(tokens, rows=1)[:, 0])
        return logits

    def scores(self, tokens: Tensor) -> Tensor:
        """Proxy: dot product of tile and CLS token; of repeated tiles the first copy counts."""
        encoded = self.encode(tokens.unsqueeze(0))[0]
        return encoded[1 : len(tokens) + 1] @ encoded[0]


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
preset("transmil", "official", TransMILNystrom, d=512, heads=8, dropout=0.1)
