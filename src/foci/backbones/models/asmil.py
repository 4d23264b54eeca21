"""ASMIL: attention held steady by an anchor (after Ye et al. 2026), gated or with query tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from foci.backbones.base import declares
from foci.backbones.layers.attention import GatedAttention, check_activation
from foci.backbones.layers.mlp import frozen_copy, head, projection
from foci.backbones.layers.query_attention import QueryAttention, QueryBranches
from foci.backbones.layers.softmax_pooling import pool, softmax_weights
from foci.backbones.models._branched import (
    Score,
    branch_heads,
    check_branches,
    classify_branches,
    mean_attention,
    official_width,
)
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.objectives.asmil import ASMILObjective, ASMILQueryObjective
from foci.backbones.objectives.base import Objective
from foci.backbones.registry import architecture, preset


@architecture("asmil")
class ASMIL(PooledBackbone):
    """ABMIL with a second, slowly trailing copy of its attention, as the paper runs it.

    The anchor takes part in training only
    (:class:`~foci.backbones.objectives.asmil.ASMILObjective`); it is kept and counted as part of
    the model, as in the paper's efficiency table. Native score: the online attention logits
    before the softmax. The authors' published architecture is :class:`ASMILQuery`.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width; None for no projection (``h = x``, ``d = d_in``).
        hidden: Attention width.
        head_hidden: Width of a two-layer head; None for a linear one.
        projection_bias: Whether the projection has a bias.
        gated: Gated or plain attention.
        activation: Of the attention, in place of tanh: ``"relu"`` or ``"gelu"``.
        dropout: After the projection, while training.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None,
        hidden: int,
        head_hidden: int | None = None,
        projection_bias: bool = True,
        gated: bool = True,
        activation: str = "tanh",
        dropout: float = 0.0,
    ) -> None:
        check_activation(activation)
        width = d_in if d is None else d
        super().__init__(d_in, n_classes, d_token=width)
        self.projection = projection(d_in, d, bias=projection_bias, dropout=dropout)
        self.attention = GatedAttention(width, hidden, gated=gated, activation=activation)
        self.head = head(width, n_classes, head_hidden)
        self.anchor = frozen_copy(self.attention)
        self.homogeneous = d is None or not projection_bias

    def make_objective(self, **settings: Any) -> Objective:
        """See :class:`~foci.backbones.objectives.asmil.ASMILObjective`."""
        return ASMILObjective(self, **settings)


@architecture("asmil-query")
class ASMILQuery(PooledBackbone):
    r"""T learned queries summarise the bag, a class query summarises the summaries.

    Query t pools the tiles with its own multi-head attention into :math:`f_t`; then

    .. math:: \ell = \mathrm{head}\big(\mathrm{attention}(q_\mathrm{cls}, \{f_1, \dots, f_T\})\big)

    Tiles meet only in the T first attentions, so every prefix of a ranking follows from running
    sums. The classifiers of the single queries are part of the published weights and unused.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width, a multiple of ``heads``; None for the authors' choice, half of ``d_in``.
        branches: Number of queries T.
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
        branches: int = 8,
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
        self.class_query = nn.Parameter(torch.zeros(1, 1, d))
        self.bag = QueryAttention(d, heads, dropout)

    def attend(self, tokens: Tensor) -> Tensor:
        """One row per query and head."""
        logits: Tensor = self.branches(tokens)
        return logits

    def branch_logits(self, pooled: Tensor) -> Tensor:
        """Pooled tokens ``[..., R, d]`` to every query's own logits ``[..., T, C]``."""
        return classify_branches(self.branch_heads, self.branches.read(pooled))

    def classify(self, summaries: Tensor, keep: Tensor | None = None) -> Tensor:
        """Summaries ``[..., T, d]`` (those in ``keep`` ``[..., T]``) to logits ``[..., C]``."""
        weights = softmax_weights(self.bag.logits(self.class_query[0, 0], summaries), keep)
        values = self.bag.project(pool(weights, summaries.unsqueeze(-2)))
        logits: Tensor = self.head(self.bag(values))
        return logits

    @declares("split-readout")
    def readout(self, pooled: Tensor) -> Tensor:
        """Values of the pooled tokens, then the slide."""
        return self.read(self.project(pooled))

    @declares("split-readout")
    def project(self, values: Tensor) -> Tensor:
        """Every query's own values ``[..., R, d/H]``, of pooled tokens or tiles ``[..., 1, d]``."""
        return self.branches.project(values)

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        """Class attention over all summaries."""
        return self.classify(self.branches.summarise(projected))

    def scores(self, tokens: Tensor) -> Tensor:
        """Mean over queries and heads of the attention logits, or of the softmax maps."""
        return mean_attention(self.attend(tokens), self.score)

    def make_objective(self, **settings: Any) -> Objective:
        """See :class:`~foci.backbones.objectives.asmil.ASMILQueryObjective`."""
        return ASMILQueryObjective(self, **settings)


preset("asmil", "paper", ASMIL, d=256, hidden=128, head_hidden=128, projection_bias=False)
preset("asmil", "official", ASMILQuery, branches=8, heads=8)
