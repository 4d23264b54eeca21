"""Rank by the classifier's own tile scores, such as attention logits."""

from __future__ import annotations

from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag


@ranking("native", needs=("tile score",))
def native(bag: EmbeddedBag) -> Tensor:
    """The classifier's own tile scores, as in the paper's ranking-score table.

    Attention logits before the softmax (ABMIL, CLAM-SB, ASMIL, MHIM-MIL), their mean over the
    branches (ACMIL), the largest attribute score over the classes (AttriMIL), attention to the
    critical tile (DSMIL), the score by which tiles compete (max pooling, ``MIL_fc``). Where there
    is none, a documented proxy: for TransMIL the dot product of tile and CLS token after the
    encoder, for mean pooling the tile's own logit of the predicted class.
    """
    return bag.backbone.scores(bag.tokens)
