"""ACMIL with multi-head attention branches (Zhang et al. 2024)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from foci.backbones.acmil_objective import ACMILObjective
from foci.backbones.objective import Objective
from foci.backbones.presets import architecture, preset
from foci.backbones.query_attention import HeadReadout
from foci.backbones.query_backbone import QueryBackbone


@architecture("acmil-mha")
class ACMILMultiHead(QueryBackbone):
    r"""K learned queries look at the bag; the slide is read with the mean of their maps.

    Query r scores the tiles with head j by :math:`a^{rj}_i`. The slide's token has no query of
    its own: its head j pools with the mean map and projects with values of its own,

    .. math:: z_j = \sum_i \frac1K \sum_r \mathrm{softmax}(a^{rj})_i\, h_i, \qquad
       \ell = \mathrm{head}\big(\mathrm{readout}(z_1, \dots, z_H)\big)

    with the readout of :class:`~foci.backbones.query_attention.HeadReadout`. Each branch has its
    own readout and classifier, used only in training.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        **widths: As for :class:`~foci.backbones.query_backbone.QueryBackbone`.
    """

    def __init__(self, d_in: int, n_classes: int, **widths: Any) -> None:
        super().__init__(d_in, n_classes, **widths)
        self.bag = HeadReadout(self.d_token, self.config["heads"], self.config["dropout"])

    def project(self, tokens: Tensor) -> Tensor:
        """The slide's own values; all queries share them."""
        if tokens.shape[-2] == 1:
            return torch.cat([self.bag.project(tokens)] * self.n_branches, dim=-2)
        groups = torch.unflatten(tokens, -2, (self.n_branches, -1))
        return self.bag.project(groups).flatten(-3, -2)

    def read(self, values: Tensor) -> Tensor:
        """Mean over the queries, head by head, then the slide's readout and classifier."""
        per_head = torch.unflatten(values, -2, (self.n_branches, -1)).mean(dim=-3)
        logits: Tensor = self.head(self.bag(per_head))
        return logits

    def make_objective(self, **settings: Any) -> Objective:
        """See :class:`~foci.backbones.acmil_objective.ACMILObjective`."""
        return ACMILObjective(self, **settings)


preset("acmil", "mha", ACMILMultiHead, branches=5, heads=8)
