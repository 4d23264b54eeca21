"""What ACMIL and ASMIL share: several attention branches on bias-free ReLU tokens.

Attention rows are ordered by branch, then by head. Each branch has a linear classifier of its own
beside the slide's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from foci.backbones.layers.mlp import head
from foci.backbones.layers.softmax_pooling import softmax_weights
from foci.errors import FociError

Score = Literal["logits", "softmax"]


def official_width(d_in: int) -> int:
    """Token width that the authors of ACMIL and ASMIL chose for a feature width: half of it.

    The exception is 128 for 384-d features.

    >>> [official_width(d_in) for d_in in (384, 512, 768, 1024, 1536)]
    [128, 256, 384, 512, 768]
    """
    return 128 if d_in == 384 else d_in // 2


def check_branches(branches: int, score: str) -> None:
    """Refuse fewer than one branch and an unknown kind of score."""
    if branches < 1:
        raise FociError("branches", f"{branches} is too few", "choose at least 1")
    if score not in get_args(Score):
        raise FociError("score", f"{score!r} is unknown", 'choose "logits" or "softmax"')


def branch_heads(d: int, n_classes: int, branches: int) -> nn.ModuleList:
    """One linear classifier per branch."""
    return nn.ModuleList(head(d, n_classes, None) for _ in range(branches))


def classify_branches(heads: Iterable[nn.Module], tokens: Tensor) -> Tensor:
    """One token per branch ``[..., K, d]`` to every branch's own logits ``[..., K, C]``."""
    pairs = zip(heads, tokens.unbind(dim=-2), strict=True)
    return torch.stack([classify(token) for classify, token in pairs], dim=-2)


def mean_attention(logits: Tensor, score: Score) -> Tensor:
    """Mean over the rows of the attention logits ``[N, R]``, or of their softmax maps.

    The first is the paper's ranking, the second the official heat map of ACMIL; the two can rank
    tiles differently.
    """
    rows = softmax_weights(logits) if score == "softmax" else logits
    return rows.mean(dim=-1)
