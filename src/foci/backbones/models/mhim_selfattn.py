"""MHIM-MIL with its self-attention encoder, as released in version 1 (Tang et al. 2023)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from foci.backbones.base import Capabilities
from foci.backbones.layers.mlp import projection
from foci.backbones.layers.nystrom import NystromLayer
from foci.backbones.layers.ppeg import CroppedPPEG
from foci.backbones.models._ordered import OrderedBackbone
from foci.backbones.registry import architecture, preset


@architecture("mhim-selfattn")
class MHIMSelfAttention(OrderedBackbone):
    r"""Two Nyström layers around a cropped position encoding, read out at the CLS token.

    .. math:: H_1 = L_1([c;\, \phi(W X + b)]), \quad
       H_2 = L_2([H_{1,0};\, \mathrm{PPEG}(H_{1,1:})]), \quad
       \ell = W_o\,\mathrm{LN}(H_2)_0 + b_o

    Unlike TransMIL it squares the bag only inside the position encoding, so no tile is attended
    to twice. It depends on the order of the tiles and has no mask. Native score: the CLS token's
    row of the approximate attention in the second layer, averaged over the heads; it may be
    negative. For trained weights: masked hard mining is offered with the attention-pooling
    encoder (:class:`~foci.backbones.models.mhim.MHIM`), this one trains with cross-entropy.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width.
        heads: Attention heads.
        head_width: Width of a head, whatever their number; None for d / 8.
        landmarks: Nyström landmarks; None for d / 2.
        activation: :math:`\phi`, ``"relu"`` or ``"gelu"``.
        dropout: After the projection, while training.
        attention_dropout: After each attention block, while training.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        heads: int,
        head_width: int | None = None,
        landmarks: int | None = None,
        activation: str = "relu",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__(d_in, n_classes, d_token=d)
        head_width = d // 8 if head_width is None else head_width
        landmarks = d // 2 if landmarks is None else landmarks
        self.projection = projection(d_in, d, bias=True, dropout=dropout, activation=activation)
        self.cls = nn.Parameter(torch.randn(1, 1, d))
        self.layer1 = NystromLayer(d, heads, head_width, landmarks, attention_dropout)
        self.position = CroppedPPEG(d)
        self.layer2 = NystromLayer(d, heads, head_width, landmarks, attention_dropout)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, n_classes)

    @property
    def capabilities(self) -> Capabilities:
        """Order-dependent, no closed form, native score, feature gate only."""
        return Capabilities(
            order_free=False, closed_form=False, score="native", gate_sites=("feature",)
        )

    def embed(self, x: Tensor) -> Tensor:
        """Projection."""
        tokens: Tensor = self.projection(x)
        return tokens

    def _before_layer2(self, tokens: Tensor) -> Tensor:
        hidden = self.layer1(torch.cat([self.cls.expand(len(tokens), -1, -1), tokens], dim=1))
        return torch.cat([hidden[:, :1], self.position(hidden[:, 1:])], dim=1)

    def classify(self, tokens: Tensor) -> Tensor:
        """Linear head on the CLS token."""
        cls = self.layer2(self._before_layer2(tokens))[:, 0]
        logits: Tensor = self.head(self.norm(cls))
        return logits

    def scores(self, tokens: Tensor) -> Tensor:
        """Approximate attention of the CLS token in layer 2, mean over heads."""
        rows = self.layer2.cls_row(self._before_layer2(tokens.unsqueeze(0)))
        return rows[0, :, 1:].mean(dim=0)


preset(
    "mhim-mil",
    "selfattn",
    MHIMSelfAttention,
    d=512,
    heads=8,
    dropout=0.25,
    attention_dropout=0.1,
)
