"""Classifiers that look at a bag through several attention branches."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from foci.backbones.layers import head, projection
from foci.backbones.pooled import ProjectedPool
from foci.backbones.pooling import softmax_weights
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
