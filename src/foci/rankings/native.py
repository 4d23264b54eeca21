"""The classifier's own ranking."""

from __future__ import annotations

from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal.embedded_bag import EmbeddedBag


@ranking("native", needs=("tile score",))
def native(bag: EmbeddedBag) -> Tensor:
    """What the classifier itself ranks by, as in the paper's ranking-score table.

    Attention logits before the softmax (ABMIL, CLAM-SB, ASMIL, MHIM-MIL), their mean over the
    branches (ACMIL), the largest attribute score over the classes (AttriMIL); for TransMIL, which
    has none, the documented proxy, the dot product of tile and CLS token after the encoder.
    """
    return bag.backbone.scores(bag.tokens)
