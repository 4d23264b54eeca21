"""CLAM with one attention branch per class (Lu et al., 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from foci.backbones.clam import CLAM
from foci.backbones.pooling import pool, softmax_weights
from foci.backbones.presets import architecture, preset


@architecture("clam-mb")
class CLAMMB(CLAM):
    r"""One attention row, one weighted mean and one linear head per class.

    .. math:: a_{ci} = w_c^\top(\tanh(V h_i) \odot \sigma(U h_i)), \quad
       \ell_c = u_c^\top \sum_i \mathrm{softmax}(a_c)_i\, h_i + b_c

    Trained with :class:`~foci.backbones.clam_objective.InstanceClustering`, where the tiles of
    class c are chosen by row c.

    Args:
        d_in: Feature width.
        n_classes: Number of classes, and of attention rows.
        d: Token width.
        hidden: Attention width.
        projection_bias: Whether the projection has a bias.
        gated: Gated or plain tanh attention.
        dropout: After the projection, while training; see :class:`CLAM`.
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
    ) -> None:
        super().__init__(
            d_in,
            n_classes,
            rows=n_classes,
            d=d,
            hidden=hidden,
            projection_bias=projection_bias,
            gated=gated,
            dropout=dropout,
        )
        self.heads = nn.ModuleList(nn.Linear(d, 1) for _ in range(n_classes))

    def readout(self, pooled: Tensor) -> Tensor:
        """Head c on the token pooled by row c."""
        rows = pooled.unbind(dim=-2)
        return torch.cat([head(row) for head, row in zip(self.heads, rows, strict=True)], dim=-1)

    def project(self, values: Tensor) -> Tensor:
        """Head c on the token of a tile, for row c: ``[..., 1, d]`` to ``[..., C, 1]``."""
        return torch.cat([head(values) for head in self.heads], dim=-2)

    def read(self, projected: Tensor) -> Tensor:
        """Each row is a logit already."""
        return projected.squeeze(-1)

    def scores(self, tokens: Tensor) -> Tensor:
        r"""Attention before the softmax in the row of the class that the *full bag* predicts.

        :math:`a_{\hat c i}` with :math:`\hat c = \arg\max_c \ell_c`: tokens must be the whole bag.
        """
        attention = self.attend(tokens)
        logits = self.readout(pool(softmax_weights(attention), self.values(tokens)))
        return attention[:, int(logits.argmax())]


preset("clam-mb", "official", CLAMMB, d=512, hidden=256, dropout=0.25)
