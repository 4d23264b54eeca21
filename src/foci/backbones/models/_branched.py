"""Classifiers that look at a bag through several attention branches."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from foci.backbones.layers.mlp import head, projection
from foci.backbones.layers.query_attention import QueryBranches
from foci.backbones.layers.softmax_pooling import softmax_weights
from foci.backbones.models._pooled import ProjectedPool
from foci.errors import FociError

Score = Literal["logits", "softmax"]


def official_width(d_in: int) -> int:
    """Token width that the authors of ACMIL and ASMIL chose for a feature width: half of it.

    The exception is 128 for 384-d features.

    >>> [official_width(d_in) for d_in in (384, 512, 768, 1024, 1536)]
    [128, 256, 384, 512, 768]
    """
    return 128 if d_in == 384 else d_in // 2


class BranchedBackbone(ProjectedPool):
    r"""K branches, each with one or more attention rows, a classifier per branch and one per slide.

    Tokens are :math:`h_i = \mathrm{ReLU}(W x_i)` without bias. Rows are ordered by branch, then
    by head. The native score of a tile averages over all rows, either the logits before the
    softmax (``score="logits"``, the paper's ranking) or the softmax maps (``score="softmax"``,
    the official heat map of ACMIL); the two can rank tiles differently.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width; None for :func:`official_width`.
        branches: Number of branches K.
        score: What the native score averages.
        **widths: The subclass's own constructor arguments.
    """

    homogeneous = True

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None,
        branches: int,
        score: Score,
        **widths: Any,
    ) -> None:
        if branches < 1:
            raise FociError("branches", f"{branches} is too few", "choose at least 1")
        if score not in get_args(Score):
            raise FociError("score", f"{score!r} is unknown", 'choose "logits" or "softmax"')
        d = official_width(d_in) if d is None else d
        super().__init__(d_in, n_classes, d_token=d, d=d, branches=branches, score=score, **widths)
        self.n_branches, self.score = branches, score
        self.projection = projection(d_in, d, bias=False)
        self.branch_heads = nn.ModuleList(head(d, n_classes, None) for _ in range(branches))
        self.head = head(d, n_classes, None)

    @abstractmethod
    def branch_tokens(self, pooled: Tensor) -> Tensor:
        """Pooled tokens ``[..., R, d]`` to one token per branch ``[..., K, d]``."""

    def branch_logits(self, pooled: Tensor) -> Tensor:
        """Pooled tokens ``[..., R, d]`` to every branch's own logits ``[..., K, C]``."""
        tokens = self.branch_tokens(pooled).unbind(dim=-2)
        pairs = zip(self.branch_heads, tokens, strict=True)
        return torch.stack([classify(token) for classify, token in pairs], dim=-2)

    def scores(self, tokens: Tensor) -> Tensor:
        """Mean over the rows of the attention logits, or of the softmax maps."""
        logits = self.attend(tokens)
        rows = softmax_weights(logits) if self.score == "softmax" else logits
        return rows.mean(dim=-1)


class QueryBackbone(BranchedBackbone):
    """K learned queries, each looking at the bag with H heads: R = K*H attention rows.

    A subclass says which values a row pools (``project``, linear, so that it may act on tiles or
    on what was pooled from them) and how the slide is read from them (``read``).

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width, a multiple of ``heads``; None for the authors' choice, half of ``d_in``.
        branches: Number of queries K.
        heads: Heads H of every attention.
        score: What the native score averages over queries and heads: ``"logits"`` or
            ``"softmax"``.
        dropout: On the attention outputs, while training.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None = None,
        branches: int = 5,
        heads: int = 8,
        score: Score = "logits",
        dropout: float = 0.1,
    ) -> None:
        super().__init__(
            d_in, n_classes, d=d, branches=branches, score=score, heads=heads, dropout=dropout
        )
        self.branches = QueryBranches(self.d_token, branches, heads, dropout)

    def attend(self, tokens: Tensor) -> Tensor:
        """One row per query and head."""
        logits: Tensor = self.branches(tokens)
        return logits

    def branch_tokens(self, pooled: Tensor) -> Tensor:
        """Every query's own readout of its heads."""
        return self.branches.summarise(self.branches.project(pooled))

    @abstractmethod
    def project(self, tokens: Tensor) -> Tensor:
        """Pooled tokens ``[..., R, d]`` or tiles ``[..., 1, d]`` to values ``[..., R, d/H]``."""

    @abstractmethod
    def read(self, values: Tensor) -> Tensor:
        """Pooled values ``[..., R, d/H]`` to logits ``[..., C]``."""

    def readout(self, pooled: Tensor) -> Tensor:
        """Values of the pooled tokens, then the slide."""
        return self.read(self.project(pooled))
