"""ACMIL: several attention branches, challenged to differ (Zhang et al. 2024)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from foci.backbones.layers.attention import GatedAttention
from foci.backbones.layers.query_attention import HeadReadout
from foci.backbones.models._branched import BranchedBackbone, QueryBackbone, Score
from foci.backbones.objectives.acmil import ACMILObjective
from foci.backbones.objectives.base import Objective
from foci.backbones.registry import architecture, preset


@architecture("acmil")
class ACMIL(BranchedBackbone):
    r"""K gated attention rows on one trunk; the slide is read with the mean of their maps.

    .. math:: h_i = \mathrm{ReLU}(W x_i), \quad
       a_{ri} = w_r^\top(\tanh(V h_i) \odot \sigma(U h_i)) + b_r, \quad
       \ell = \mathrm{head}\Big(\sum_i \frac1K \sum_r \mathrm{softmax}(a_r)_i\, h_i\Big)

    The mean is over softmax maps, not over logits: a softmax of the mean logits would be another
    model. Each branch also has a classifier of its own, used only in training
    (:class:`~foci.backbones.objectives.acmil.ACMILObjective`).

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width; None for the authors' choice, half the feature width.
        hidden: Attention width.
        branches: Number of branches K.
        score: What the native score averages over the branches: ``"logits"`` or ``"softmax"``.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None = None,
        hidden: int = 128,
        branches: int = 5,
        score: Score = "logits",
    ) -> None:
        super().__init__(d_in, n_classes, d=d, branches=branches, score=score, hidden=hidden)
        self.attention = GatedAttention(self.d_token, hidden, rows=branches)

    def attend(self, tokens: Tensor) -> Tensor:
        """Gated attention, one row per branch."""
        logits: Tensor = self.attention(tokens)
        return logits

    def branch_tokens(self, pooled: Tensor) -> Tensor:
        """A branch has one row: its pooled token."""
        return pooled

    def readout(self, pooled: Tensor) -> Tensor:
        """Slide classifier on the mean over the branches."""
        logits: Tensor = self.head(pooled.mean(dim=-2))
        return logits

    def project(self, values: Tensor) -> Tensor:
        """Slide classifier on every value: the mean over the branches may follow it."""
        projected: Tensor = self.head(values)
        return projected

    def read(self, projected: Tensor) -> Tensor:
        """Mean over the branches."""
        return projected.mean(dim=-2)

    def make_objective(self, **settings: Any) -> Objective:
        """See :class:`~foci.backbones.objectives.acmil.ACMILObjective`."""
        return ACMILObjective(self, **settings)


preset("acmil", "paper", ACMIL, d=512, hidden=128, branches=5)
preset("acmil", "official", ACMIL, hidden=128, branches=5)


@architecture("acmil-mha")
class ACMILMultiHead(QueryBackbone):
    r"""K learned queries look at the bag; the slide is read with the mean of their maps.

    Query r scores the tiles with head j by :math:`a^{rj}_i`. The slide's token has no query of
    its own: its head j pools with the mean map and projects with values of its own,

    .. math:: z_j = \sum_i \frac1K \sum_r \mathrm{softmax}(a^{rj})_i\, h_i, \qquad
       \ell = \mathrm{head}\big(\mathrm{readout}(z_1, \dots, z_H)\big)

    with the readout of :class:`~foci.backbones.layers.query_attention.HeadReadout`. Each branch
    has its own readout and classifier, used only in training.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        **widths: As for :class:`~foci.backbones.models._branched.QueryBackbone`.
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
        """See :class:`~foci.backbones.objectives.acmil.ACMILObjective`."""
        return ACMILObjective(self, **settings)


preset("acmil", "mha", ACMILMultiHead, branches=5, heads=8)
