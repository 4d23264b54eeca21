"""Shape of a selector head: from backbone and recipe, and back to a head."""

from __future__ import annotations

from foci.backbones.base import Backbone
from foci.reveal.candidates.pooled import pools
from foci.selectors.evidence.columns import column_names
from foci.selectors.evidence.head import EvidenceHead
from foci.selectors.heads.attending import SUMMARIES
from foci.selectors.heads.token import SelectorHead
from foci.selectors.metadata import HeadShape
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.selector import Head


def head_shape(backbone: Backbone, recipe: SelectorRecipe) -> HeadShape:
    """Shape of the head that a recipe gives a backbone."""
    outputs = backbone.n_classes if recipe.class_conditional else 1
    d, hidden = backbone.d_token, recipe.hidden(backbone.d_token)
    columns, summaries = 0, SUMMARIES if recipe.head == "attending" else 0
    if recipe.start != "random":
        columns = len(column_names(backbone))
        if recipe.correction == "never" or (recipe.correction == "interacting" and pools(backbone)):
            hidden = summaries = 0
    return HeadShape(d=d, outputs=outputs, hidden=hidden, columns=columns, summaries=summaries)


def make_head(shape: HeadShape) -> Head:
    """A head of this shape, its weights drawn from the global random state."""
    if shape.columns:
        return EvidenceHead(shape.d, shape.outputs, shape.hidden, shape.columns, shape.summaries)
    return SelectorHead(shape.d, shape.outputs, shape.hidden, shape.summaries)


def shape_of(head: Head) -> HeadShape:
    """Shape of an existing head."""
    columns = head.columns if isinstance(head, EvidenceHead) else 0
    return HeadShape(
        d=head.d,
        outputs=head.outputs,
        hidden=head.hidden,
        columns=columns,
        summaries=head.summaries,
    )
