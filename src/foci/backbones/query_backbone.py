"""Classifiers whose branches are learned queries with multi-head attention."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from foci.backbones.branches import BranchedBackbone, Score
from foci.backbones.query_attention import QueryBranches


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
