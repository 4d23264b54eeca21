"""Projection, attention, one weighted mean, head: what ABMIL, CLAM-SB and MHIM-MIL share."""

from __future__ import annotations

from torch import Tensor, nn

from foci.backbones.layers import split_head
from foci.backbones.pooled import ProjectedPool


class AttentionPool(ProjectedPool):
    r"""Classifies the attention-weighted mean of the projected tiles.

    .. math:: h_i = \mathrm{projection}(x_i), \quad a_i = \mathrm{attention}(h_i), \quad
       \ell = \mathrm{head}\Big(\sum_i \mathrm{softmax}(a)_i\, h_i\Big)

    A subclass builds the three modules.
    """

    attention: nn.Module
    head: nn.Module

    def attend(self, tokens: Tensor) -> Tensor:
        """Attention logits."""
        logits: Tensor = self.attention(tokens)
        return logits

    def readout(self, pooled: Tensor) -> Tensor:
        """Head on the one pooled token."""
        logits: Tensor = self.head(pooled.squeeze(-2))
        return logits

    def project(self, values: Tensor) -> Tensor:
        """First layer of the head."""
        projected: Tensor = split_head(self.head)[0](values)
        return projected

    def read(self, projected: Tensor) -> Tensor:
        """The layers of the head after the first."""
        logits: Tensor = split_head(self.head)[1](projected.squeeze(-2))
        return logits
