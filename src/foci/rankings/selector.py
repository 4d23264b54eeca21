"""Rank by a trained selector, or by any other function of the tokens."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from foci.backbones.freezing import frozen
from foci.errors import FociError
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.selectors.evidence.columns import columns_of
from foci.selectors.selector import FittedSelector, Selector


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
