"""Rank by proof: the tiles that the decision hangs on, first."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.base import declared
from foci.backbones.models._pooled import PooledBackbone
from foci.metrics.minimal import NO_BOUND, MinimalSet, minimal_decisive, nearest_rivals
from foci.parts import Parts
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag

TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-5}
"""Relative error of a margin to reckon with, by the classifier's precision; 1e-2 in any other."""


@ranking("minimal", needs=("smallest flip", "target"))
def minimal(bag: EmbeddedBag) -> Tensor:
    r"""Attention weight times the margin of the tile alone over the nearest rival.

    .. math:: s_i = w_i\, m_i, \qquad m_i = \ell_t(\{i\}) - \ell_r(\{i\})

    with the softmax weights :math:`w_i` of the full bag and the rival r to which the fewest tiles
    flip the decision. With a linear head the first K* tiles are the smallest set of all whose
    removal flips it (theorem T1, :func:`foci.metrics.minimal.smallest_flip`): no order can do
    better. The scores of two classes add up to the log-odds of the target. Where the best tile
    alone gives the logits, the score is that by which tiles compete.
    """
    parts = _parts(bag)
    if parts.hard:
        rivals = parts.attention.shape[1]
        return torch.from_numpy(parts.attention[:, bag.target if rivals > 1 else 0].copy())
    _, terms = nearest_rivals(parts, bag.target)[0]
    return torch.from_numpy(terms)


def minimal_is_exact(backbone: Backbone) -> bool:
    """Whether ``minimal`` gives the smallest decisive set of *every* decided slide (T2)."""
    structure = backbone.capabilities.structure
    two = structure == "linear head" and backbone.n_classes == 2
    return structure == "best tile" or (two and not getattr(backbone, "plus_one", False))


def minimal_set(
    bag: EmbeddedBag,
    kappa: float = 0.9,
    known: Sequence[int] | None = None,
    *,
    steps: int | None = None,
) -> MinimalSet:
    """The smallest decisive set of a bag over all subsets, as far as it can be proven.

    See :func:`foci.metrics.minimal_decisive`. ``known`` are the tiles of a decisive set that a
    ranking found, such as the first of ``evidence``; ``steps`` limits the search.

    >>> from foci import backbones
    >>> model = backbones.create("mean-mil", "official", d_in=8, n_classes=2)
    >>> found = minimal_set(EmbeddedBag(model, torch.randn(5, 8)), kappa=0.5)
    >>> found.theorem, len(found.tiles) == (found.k or 0)
    ('T2', True)
    """
    if bag.backbone.capabilities.structure == "none":
        return NO_BOUND
    tolerance = TOLERANCES.get(bag.features.dtype, 1e-2)
    return minimal_decisive(
        _parts(bag), bag.target, kappa, known=known, tolerance=tolerance, steps=steps
    )


def _parts(bag: EmbeddedBag) -> Parts:
    """Of the tiles as the curves pool them, where that is the same, or of the tokens."""

    def compute() -> Parts:
        backbone = bag.backbone
        own = getattr(backbone.parts, "__func__", None) is PooledBackbone.parts
        split = own and declared(backbone, "split-readout")
        if split and isinstance(backbone, PooledBackbone) and not backbone.plus_one and bag.pooled:
            return backbone.joined(bag.pooled.attention, bag.pooled.values)
        return backbone.parts(bag.tokens)

    return bag.cached("parts", compute)
