"""ACMIL: several attention branches, challenged to differ (Zhang et al. 2024)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from foci.backbones.base import declares
from foci.backbones.layers.attention import GatedAttention
from foci.backbones.layers.mlp import head, projection
from foci.backbones.layers.query_attention import HeadReadout, QueryBranches
from foci.backbones.models._branched import (
    Score,
    branch_heads,
    check_branches,
    classify_branches,
    mean_attention,
    official_width,
)
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.objectives.acmil import ACMILObjective
from foci.backbones.objectives.base import Objective
from foci.backbones.registry import architecture, preset


@architecture("acmil")
class ACMIL(PooledBackbone):
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
        branches: Number of branches K.
        score: What the native score averages over the branches: ``"logits"`` or ``"softmax"``.
        hidden: Attention width.
    """

    homogeneous = True

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None = None,
        branches: int = 5,
        score: Score = "logits",
        hidden: int = 128,
    ) -> None:
        check_branches(branches, score)
        d = official_width(d_in) if d is None else d
        super().__init__(d_in, n_classes, d_token=d, d=d)
        self.n_branches, self.score = branches, score
        self.projection = projection(d_in, d, bias=False)
        self.branch_heads = branch_heads(d, n_classes, branches)
        self.head = head(d, n_classes, None)
        self.attention = GatedAttention(d, hidden, rows=branches)

    def branch_logits(self, pooled: Tensor) -> Tensor:
        """Pooled tokens ``[..., K, d]`` to every branch's own logits ``[..., K, C]``."""
        return classify_branches(self.branch_heads, pooled)

    @declares("split-readout")
    def readout(self, pooled: Tensor) -> Tensor:
        """Slide classifier on the mean over the branches."""
        logits: Tensor = self.head(pooled.mean(dim=-2))
        return logits

    @declares("split-readout")
    def project(self, values: Tensor) -> Tensor:
        """Slide classifier on every value: the mean over the branches may follow it."""
        projected: Tensor = self.head(values)
        return projected

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        """Mean over the branches."""
        return projected.mean(dim=-2)

    def scores(self, tokens: Tensor) -> Tensor:
        """Mean over the branches of the attention logits, or of the softmax maps."""
        return mean_attention(self.attend(tokens), self.score)

    def make_objective(self, **settings: Any) -> Objective:
        """See :class:`~foci.backbones.objectives.acmil.ACMILObjective`."""
        return ACMILObjective(self, **settings)


@architecture("acmil-mha")
class ACMILMultiHead(PooledBackbone):
    r"""ACMIL with K learned queries; the slide is read with the mean of their maps.

    Query r scores the tiles with head j by :math:`a^{rj}_i`: R = K*H attention rows. The slide's
    token has no query of its own: its head j pools with the mean map and projects with values of
    its own,

    .. math:: z_j = \sum_i \frac1K \sum_r \mathrm{softmax}(a^{rj})_i\, h_i, \qquad
       \ell = \mathrm{head}\big(\mathrm{readout}(z_1, \dots, z_H)\big)

    with the readout of :class:`~foci.backbones.layers.query_attention.HeadReadout`. Each branch
    has its own readout and classifier, used only in training.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width, a multiple of ``heads``; None for the authors' choice, half of ``d_in``.
        branches: Number of queries K.
        score: What the native score averages over queries and heads: ``"logits"`` or
            ``"softmax"``.
        heads: Heads H of every attention.
        dropout: On the attention outputs, while training.
    """

    homogeneous = True

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None = None,
        branches: int = 5,
        score: Score = "logits",
        heads: int = 8,
        dropout: float = 0.1,
    ) -> None:
        check_branches(branches, score)
        d = official_width(d_in) if d is None else d
        super().__init__(d_in, n_classes, d_token=d, d=d)
        self.n_branches, self.score = branches, score
        self.projection = projection(d_in, d, bias=False)
        self.branch_heads = branch_heads(d, n_classes, branches)
        self.head = head(d, n_classes, None)
        self.branches = QueryBranches(d, branches, heads, dropout)
        self.bag = HeadReadout(d, heads, dropout)

    def attend(self, tokens: Tensor) -> Tensor:
        """One row per query and head."""
        logits: Tensor = self.branches(tokens)
        return logits

    def branch_logits(self, pooled: Tensor) -> Tensor:
        """Pooled tokens ``[..., R, d]`` to every query's own logits ``[..., K, C]``."""
        return classify_branches(self.branch_heads, self.branches.read(pooled))

    @declares("split-readout")
    def readout(self, pooled: Tensor) -> Tensor:
        """Values of the pooled tokens, then the slide."""
        return self.read(self.project(pooled))

    @declares("split-readout")
    def project(self, values: Tensor) -> Tensor:
        """The slide's own values ``[..., R, d/H]``, of pooled tokens or of tiles ``[..., 1, d]``.

        All queries share them.
        """
        if values.shape[-2] == 1:
            return torch.cat([self.bag.project(values)] * self.n_branches, dim=-2)
        groups = torch.unflatten(values, -2, (self.n_branches, -1))
        return self.bag.project(groups).flatten(-3, -2)

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        """Mean over the queries, head by head, then the slide's readout and classifier."""
        per_head = torch.unflatten(projected, -2, (self.n_branches, -1)).mean(dim=-3)
        logits: Tensor = self.head(self.bag(per_head))
        return logits

    def scores(self, tokens: Tensor) -> Tensor:
        """Mean over queries and heads of the attention logits, or of the softmax maps."""
        return mean_attention(self.attend(tokens), self.score)

    def make_objective(self, **settings: Any) -> Objective:
        """See :class:`~foci.backbones.objectives.acmil.ACMILObjective`."""
        return ACMILObjective(self, **settings)


preset("acmil", "paper", ACMIL, d=512, hidden=128, branches=5)
preset("acmil", "official", ACMIL, hidden=128, branches=5)
preset("acmil", "mha", ACMILMultiHead, branches=5, heads=8)
