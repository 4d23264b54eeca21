"""CLAM with a single attention branch or one per class (Lu et al., 2021)."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from foci.backbones.base import declares
from foci.backbones.layers.attention import GatedAttention
from foci.backbones.layers.mlp import head, projection
from foci.backbones.layers.softmax_pooling import pool, softmax_weights
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.objectives.clam import InstanceClustering
from foci.backbones.registry import architecture, preset

_ATTENTION_DROPOUT = 0.25
"""Fixed by the authors: whatever the dropout after the projection, unless that is 0."""


@architecture("clam-sb")
class CLAMSB(PooledBackbone):
    r"""CLAM-SB: one attention score per tile, one weighted mean, one head.

    .. math:: h_i = \mathrm{ReLU}(W x_i), \quad
       a_i = w^\top(\tanh(V h_i) \odot \sigma(U h_i)), \quad
       \ell = \mathrm{head}\Big(\sum_i \mathrm{softmax}(a)_i\, h_i\Big)

    Trained with :class:`~foci.backbones.objectives.clam.InstanceClustering`; its instance
    classifiers, one per class, take no part in a prediction. Native score: :math:`a_i` before the
    softmax.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width.
        hidden: Attention width.
        projection_bias: Whether the projection has a bias.
        gated: Gated or plain tanh attention.
        dropout: After the projection, while training; unless it is 0, the attention factors have
            a dropout of 0.25 each.
        head_hidden: Width of a two-layer head; None for a linear one.
        projection_activation: ``"relu"`` or ``"gelu"``.
        projection_layers: Layers of the projection.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        hidden: int,
        projection_bias: bool = True,
        gated: bool = True,
        dropout: float = 0.0,
        head_hidden: int | None = None,
        projection_activation: str = "relu",
        projection_layers: int = 1,
    ) -> None:
        super().__init__(d_in, n_classes, d_token=d)
        self.projection = projection(
            d_in,
            d,
            bias=projection_bias,
            dropout=dropout,
            activation=projection_activation,
            layers=projection_layers,
        )
        self.homogeneous = not projection_bias and projection_activation == "relu"
        self.attention = _attention(d, hidden, 1, gated, dropout)
        self.instance_classifiers = _instance_classifiers(d, n_classes)
        self.head = head(d, n_classes, head_hidden)

    def make_objective(self, **settings: Any) -> InstanceClustering:
        """Bag loss and instance clustering; see :class:`InstanceClustering` for the settings."""
        return InstanceClustering(self, **settings)


@architecture("clam-mb")
class CLAMMB(PooledBackbone):
    r"""CLAM-MB: one attention row, one weighted mean and one linear head per class.

    .. math:: a_{ci} = w_c^\top(\tanh(V h_i) \odot \sigma(U h_i)), \quad
       \ell_c = u_c^\top \sum_i \mathrm{softmax}(a_c)_i\, h_i + b_c

    Trained with :class:`~foci.backbones.objectives.clam.InstanceClustering`, where the tiles of
    class c are chosen by row c.

    Args:
        d_in: Feature width.
        n_classes: Number of classes, and of attention rows.
        d: Token width.
        hidden: Attention width.
        projection_bias: Whether the projection has a bias.
        gated: Gated or plain tanh attention.
        dropout: After the projection, while training; unless it is 0, the attention factors have
            a dropout of 0.25 each.
        projection_activation: ``"relu"`` or ``"gelu"``.
        plus_one: Pool with softmax-plus-one, :math:`e^{a_i} / (1 + \sum_j e^{a_j})`.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        hidden: int,
        projection_bias: bool = True,
        gated: bool = True,
        dropout: float = 0.0,
        projection_activation: str = "relu",
        plus_one: bool = False,
    ) -> None:
        super().__init__(d_in, n_classes, d_token=d)
        self.projection = projection(
            d_in, d, bias=projection_bias, dropout=dropout, activation=projection_activation
        )
        self.homogeneous = not projection_bias and projection_activation == "relu"
        self.plus_one = plus_one
        self.attention = _attention(d, hidden, n_classes, gated, dropout)
        self.instance_classifiers = _instance_classifiers(d, n_classes)
        self.heads = nn.ModuleList(nn.Linear(d, 1) for _ in range(n_classes))

    @declares("split-readout")
    def readout(self, pooled: Tensor) -> Tensor:
        """Head c on the token pooled by row c."""
        rows = pooled.unbind(dim=-2)
        return torch.cat([head(row) for head, row in zip(self.heads, rows, strict=True)], dim=-1)

    @declares("split-readout")
    def project(self, values: Tensor) -> Tensor:
        """Head c on the token of a tile, for row c: ``[..., 1, d]`` to ``[..., C, 1]``."""
        return torch.cat([head(values) for head in self.heads], dim=-2)

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        """Each row is a logit already."""
        return projected.squeeze(-1)

    def scores(self, tokens: Tensor) -> Tensor:
        r"""Attention before the softmax in the row of the class that the *full bag* predicts.

        :math:`a_{\hat c i}` with :math:`\hat c = \arg\max_c \ell_c`: tokens must be the whole bag.
        """
        attention = self.attend(tokens)
        weights = softmax_weights(attention, plus_one=self.plus_one)
        logits = self.readout(pool(weights, self.values(tokens)))
        return attention[:, int(logits.argmax())]

    def make_objective(self, **settings: Any) -> InstanceClustering:
        """Bag loss and instance clustering; see :class:`InstanceClustering` for the settings."""
        return InstanceClustering(self, **settings)


CLAM: TypeAlias = CLAMSB | CLAMMB


def _attention(d: int, hidden: int, rows: int, gated: bool, dropout: float) -> GatedAttention:
    inner = _ATTENTION_DROPOUT if dropout else 0.0
    return GatedAttention(d, hidden, rows, gated=gated, dropout=inner)


def _instance_classifiers(d: int, n_classes: int) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(d, 2) for _ in range(n_classes))


preset("clam-sb", "paper", CLAMSB, d=256, hidden=128, head_hidden=128, projection_bias=False)
preset("clam-sb", "official", CLAMSB, d=512, hidden=256, dropout=0.25)
preset("clam-sb", "big", CLAMSB, d=512, hidden=384, dropout=0.25)
preset("clam-mb", "official", CLAMMB, d=512, hidden=256, dropout=0.25)
preset("clam-mb", "plus-one", CLAMMB, d=512, hidden=128, dropout=0.25, plus_one=True)
