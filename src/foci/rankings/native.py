"""Rank by the classifier's own tile scores, such as attention logits, or by a trained selector."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from foci.backbones.base import declared
from foci.backbones.freezing import frozen
from foci.errors import FociError
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.pooled import PooledCandidates, pools
from foci.selectors.evidence import columns_of
from foci.selectors.selector import FittedSelector, Selector


@ranking("native", needs=("tile score",))
def native(bag: EmbeddedBag) -> Tensor:
    """The classifier's own tile scores, as in the paper's ranking-score table.

    Attention logits before the softmax (ABMIL, CLAM-SB, ASMIL, MHIM-MIL), their mean over the
    branches (ACMIL), the largest attribute score over the classes (AttriMIL), attention to the
    critical tile (DSMIL), the score by which tiles compete (max pooling, ``MIL_fc``). Where there
    is none, a documented proxy: for TransMIL the dot product of tile and CLS token after the
    encoder, for mean pooling the tile's own logit of the predicted class.
    """
    if pools(bag.backbone) and declared(bag.backbone, "mean-attention"):
        return cast("PooledCandidates", bag.candidates()).mean_attention()
    return bag.backbone.scores(bag.tokens)


@ranking("selector")
def selector(bag: EmbeddedBag, *, selector: Callable[[Tensor], Tensor]) -> Tensor:
    """Score every token with a selector head.

    Args:
        bag: The bag.
        selector: Maps tokens ``[N, d]`` to one score per tile, ``[N]`` or ``[N, 1]``, or to one
            score per tile and class, ``[N, C]``, of which the target's column is taken. A module
            is used in eval mode. A fitted selector refuses any classifier but its own.
    """
    owned = selector.best if isinstance(selector, FittedSelector) else selector
    if isinstance(owned, Selector) and owned.backbone is not bag.backbone:
        owned.check(bag.backbone)
    with frozen(*[selector] if isinstance(selector, nn.Module) else []):
        if isinstance(owned, Selector):
            scores = owned(bag.tokens, columns_of(bag) if owned.reads_evidence else None)
        else:
            scores = torch.as_tensor(selector(bag.tokens))
    n, c = len(bag), bag.backbone.n_classes
    if scores.shape == (n, c):
        return scores[:, bag.target]
    if scores.shape not in ((n,), (n, 1)):
        raise FociError(
            f"selector of slide {bag.slide_id}",
            f"returned shape {list(scores.shape)} for {n} tiles and {c} classes",
            f"return [{n}], [{n}, 1] or [{n}, {c}]",
        )
    return scores.reshape(n)
