"""TransMIL as its authors published it (Shao et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from foci.backbones.base import Capabilities
from foci.backbones.layers.mlp import projection
from foci.backbones.layers.nystrom import NystromLayer
from foci.backbones.layers.ppeg import PPEG, squared
from foci.backbones.models._ordered import OrderedBackbone
from foci.backbones.registry import architecture, preset
from foci.errors import FociError


@architecture("transmil-nystrom")
class TransMILNystrom(OrderedBackbone):
    r"""Two Nyström layers around a position encoding, read out at the CLS token.

    .. math:: H_0 = [c;\, \mathrm{square}(\mathrm{ReLU}(W X + b))], \quad
       H_1 = L_1(H_0), \quad H_2 = L_2([H_{1,0};\, \mathrm{PPEG}(H_{1,1:})]), \quad
       \ell = W_o\,\mathrm{LN}(H_2)_0 + b_o

    Squaring repeats the first tiles until their number is a square; they count twice. The model
    depends on the order of the tiles and has no mask: hidden tiles are not forwarded, and the
    others keep their bag order. Trained with cross-entropy. It has no tile score;
    the proxy is :math:`\langle \mathrm{LN}(H_2)_i, \mathrm{LN}(H_2)_0 \rangle`.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width.
        heads: Attention heads, each d / heads wide.
        landmarks: Nyström landmarks; None for d / 2.
        dropout: After each attention block, while training.
        aligned: False for weights trained with version 0.0.9 (or older) of the Nyström package,
            which the authors' repository pins; see
            :class:`~foci.backbones.layers.nystrom.NystromAttention`. Weights do not tell which one.
        projection_activation: ``"relu"`` or ``"gelu"``.
        projection_layers: Layers of the projection.
    """

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
    ) -> None:
        if d % heads:
            raise FociError(
                "transmil-nystrom", f"d={d} is not a multiple of heads={heads}", "change one"
            )
        super().__init__(d_in, n_classes, d_token=d)
        landmarks = d // 2 if landmarks is None else landmarks
        self.projection = projection(
            d_in, d, bias=True, activation=projection_activation, layers=projection_layers
        )
        self.cls = nn.Parameter(torch.randn(1, 1, d))
        self.layer1 = NystromLayer(d, heads, d // heads, landmarks, dropout, aligned)
        self.position = PPEG(d)
        self.layer2 = NystromLayer(d, heads, d // heads, landmarks, dropout, aligned)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, n_classes)

    @property
    def capabilities(self) -> Capabilities:
        """Order-dependent, no closed form, proxy score, feature gate only."""
        return Capabilities(
            order_free=False, closed_form=False, score="proxy", gate_sites=("feature",)
        )

    def embed(self, x: Tensor) -> Tensor:
        """Projection."""
        tokens: Tensor = self.projection(x)
        return tokens

    def encode(self, tokens: Tensor) -> Tensor:
        """Tokens ``[B, n, d]`` to ``[B, 1 + s*s, d]`` after the final LayerNorm, CLS first."""
        tiles = squared(tokens)
        hidden = self.layer1(torch.cat([self.cls.expand(len(tiles), -1, -1), tiles], dim=1))
        hidden = torch.cat([hidden[:, :1], self.position(hidden[:, 1:])], dim=1)
        encoded: Tensor = self.norm(self.layer2(hidden))
        return encoded

    def classify(self, tokens: Tensor) -> Tensor:
        """Head on the CLS token."""
        logits: Tensor = self.head(self.encode(tokens)[:, 0])
        return logits

    def scores(self, tokens: Tensor) -> Tensor:
        """Proxy: dot product of tile and CLS token; of repeated tiles the first copy counts."""
        encoded = self.encode(tokens.unsqueeze(0))[0]
        return encoded[1 : len(tokens) + 1] @ encoded[0]


preset("transmil", "official", TransMILNystrom, d=512, heads=8, dropout=0.1)
