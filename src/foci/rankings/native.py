"""Rank by the classifier's own tile scores, such as attention logits."""

from __future__ import annotations

from typing import cast

from torch import Tensor

from foci.backbones.base import declared
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.candidates.pooled import PooledCandidates, pools


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
