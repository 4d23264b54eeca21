"""Shape of a selector head: from backbone and recipe, and back to a head."""

from __future__ import annotations

from foci.backbones.base import Backbone
from foci.reveal.candidates.pooled import pools
from foci.selectors.evidence.columns import column_names
from foci.selectors.evidence.head import EvidenceHead
from foci.selectors.heads.token import SelectorHead
from foci.selectors.metadata import HeadShape
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.selector import Head


def head_shape(backbone: Backbone, recipe: SelectorRecipe) -> HeadShape:
    """Shape of the head that a recipe gives a backbone."""
    outputs = backbone.n_classes if recipe.class_conditional else 1
    d, hidden, columns = backbone.d_token, recipe.hidden(backbone.d_token), 0
    if recipe.start == "tuned":
        columns = len(column_names(backbone))
        if pools(backbone):  # tiles do not interact: nothing to correct
            hidden = 0
    return HeadShape(d=d, outputs=outputs, hidden=hidden, columns=columns)


def make_head(shape: HeadShape) -> Head:
    """A head of this shape, its weights drawn from the global random state."""
    if shape.columns:
        return EvidenceHead(shape.d, shape.outputs, shape.hidden, shape.columns)
    return SelectorHead(shape.d, shape.outputs, shape.hidden)


def shape_of(head: Head) -> HeadShape:
    """Shape of an existing head."""
    columns = head.columns if isinstance(head, EvidenceHead) else 0
    return HeadShape(d=head.d, outputs=head.outputs, hidden=head.hidden, columns=columns)
