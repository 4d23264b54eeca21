"""MHIM-MIL: masked hard instance mining (Tang et al., 2023), attention encoder of version 1."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from foci.backbones.layers.attention import GatedAttention, check_activation
from foci.backbones.layers.mlp import head, projection
from foci.backbones.layers.softmax_pooling import pool, softmax_weights
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.objectives.base import Objective
from foci.backbones.objectives.mhim import MaskedHardMining
from foci.backbones.registry import architecture, preset


@architecture("mhim")
class MHIM(PooledBackbone):
    r"""Attention pooling, trained on bags without the tiles that a teacher finds easy.

    .. math:: h_i = \phi_p(W x_i), \quad
       a_i = w^\top(\phi(V h_i) \odot \sigma(U h_i)), \quad
       z = \sum_i \mathrm{softmax}(a)_i\, h_i, \quad \ell = \mathrm{head}(z)

    Masking belongs to training (:class:`~foci.backbones.objectives.mhim.MaskedHardMining`); the
    finished classifier sees the full bag. Native score: :math:`a_i` before the softmax.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width.
        hidden: Attention width.
        gated: Without the gate the factor :math:`\sigma(U h)` is dropped.
        activation: :math:`\phi` of the attention: ``"relu"``, ``"gelu"`` or ``"tanh"``.
        attention_bias: Whether V, U and w have biases.
        projection_activation: :math:`\phi_p`: ``"relu"`` or ``"gelu"``.
        projection_bias: Whether the projection has a bias.
        head_hidden: Width of a two-layer head; None for a linear one.
        dropout: After the projection, while training.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        hidden: int,
        gated: bool = True,
        activation: str = "relu",
        attention_bias: bool = False,
        projection_activation: str = "relu",
        projection_bias: bool = True,
        head_hidden: int | None = None,
        dropout: float = 0.25,
    ) -> None:
        check_activation(activation)
        super().__init__(d_in, n_classes, d_token=d)
        self.projection = projection(
            d_in, d, bias=projection_bias, dropout=dropout, activation=projection_activation
        )
        self.attention = GatedAttention(
            d, hidden, gated=gated, activation=activation, bias=attention_bias
        )
        self.head = head(d, n_classes, head_hidden)
        self.homogeneous = not projection_bias and projection_activation == "relu"
        self.apply(_xavier)

    def bag_feature(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The pooled token z ``[B, d]`` and the attention logits ``[B, N]`` behind it."""
        logits = self.attend(tokens)
        pooled = pool(softmax_weights(logits, mask), self.values(tokens))
        return pooled.squeeze(-2), logits.squeeze(-1)

    def restart(self) -> None:
        """Reinitialise everything but the projection, as the student starts."""
        self.attention.apply(_xavier)
        self.head.apply(_xavier)

    def make_objective(self, **settings: Any) -> Objective:
        """Masked hard mining under a momentum teacher, after a plain baseline."""
        return MaskedHardMining(self, **settings)


def _xavier(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_normal_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


preset(
    "mhim-mil",
    "paper",
    MHIM,
    d=512,
    hidden=256,
    activation="tanh",
    attention_bias=True,
    projection_bias=False,
    head_hidden=256,
)
preset("mhim-mil", "official", MHIM, d=512, hidden=128)
preset("mhim-mil", "official-ungated", MHIM, d=512, hidden=128, gated=False)
