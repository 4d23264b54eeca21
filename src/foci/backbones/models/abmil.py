"""ABMIL: attention-based pooling (Ilse, Tomczak and Welling, 2018)."""

from __future__ import annotations

from torch import Tensor

from foci.backbones.attention import GatedAttention, head, projection, residual_adaptor
from foci.backbones.base import architecture, preset
from foci.backbones.models._pooled import PooledBackbone


@architecture("abmil")
class ABMIL(PooledBackbone):
    r"""One attention score per tile, one weighted mean, one head.

    .. math:: h_i = \mathrm{ReLU}(W x_i), \quad
       a_i = w^\top(\tanh(V h_i) \odot \sigma(U h_i)), \quad
       \ell = \mathrm{head}\Big(\sum_i \mathrm{softmax}(a)_i\, h_i\Big)

    Trained with cross-entropy. Native score: :math:`a_i` before the softmax. With a residual
    adaptor the tokens are :math:`h_i + W_2\,\mathrm{ReLU}(W_1 h_i)` instead.

    Args:
        d: Token width; None for no projection (``h = x``, ``d = d_in``).
        hidden: Attention width.
        head_hidden, head_layers: Width and number of the hidden layers of the head; None for a
            linear one.
        gated: Gated or plain attention.
        activation: Of the attention, in place of tanh: ``"relu"`` or ``"gelu"``.
        projection_bias, projection_activation, projection_layers, dropout: See
            :func:`~foci.backbones.attention.projection`.
        adaptor_hidden: Width inside a residual adaptor; None for no adaptor.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None,
        hidden: int,
        head_hidden: int | None = None,
        head_layers: int = 1,
        projection_bias: bool = True,
        gated: bool = True,
        activation: str = "tanh",
        dropout: float = 0.0,
        projection_activation: str = "relu",
        projection_layers: int = 1,
        adaptor_hidden: int | None = None,
    ) -> None:
        width = d_in if d is None else d
        super().__init__(d_in, n_classes, d_token=width)
        self.projection = projection(
            d_in,
            d,
            bias=projection_bias,
            dropout=dropout,
            activation=projection_activation,
            layers=projection_layers,
        )
        self.adaptor = None if adaptor_hidden is None else residual_adaptor(width, adaptor_hidden)
        self.attention = GatedAttention(width, hidden, gated=gated, activation=activation)
        self.head = head(width, n_classes, head_hidden, head_layers)
        plain = d is None or (not projection_bias and projection_activation == "relu")
        self.homogeneous = plain and self.adaptor is None

    def embed(self, x: Tensor) -> Tensor:
        """Projection, then the residual adaptor if there is one."""
        tokens = super().embed(x)
        return tokens if self.adaptor is None else tokens + self.adaptor(tokens)


preset("abmil", "paper", ABMIL, d=256, hidden=128, head_hidden=128, projection_bias=False)
preset("abmil", "official", ABMIL, d=512, hidden=128)
