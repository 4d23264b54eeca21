"""How many separate rationales does a slide have?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from foci.reveal.engine import Revealer


def disjoint_sufficient_sets(
    revealer: Revealer,
    features: Tensor,
    rank: Callable[[Tensor], Tensor],
    crossing: Callable[[Tensor], int | None],
    *,
    most: int = 8,
) -> list[Tensor]:
    """Sufficient sets with no tile in common, found one after the other.

    The tiles are ranked and revealed until the curve crosses; those tiles are taken away, and
    what is left is ranked anew, until it does not suffice any more.

    Args:
        revealer: Of the frozen classifier.
        features: ``[N, D]`` of one bag.
        rank: Features of the tiles that are left, in bag order, to their order.
        crossing: Probabilities ``[J, C]`` at counts 1..J to the count that suffices, or None; for
            the paper's condition ``lambda p: foci.metrics.msk(p, range(1, len(p) + 1), target)``.
        most: Stop after so many.

    Returns:
        Tile indices of every set, in reveal order; empty if even all tiles do not suffice.
    """
    left = torch.arange(len(features))
    found: list[Tensor] = []
    while len(found) < most and len(left):
        order = rank(features[left])
        opened = revealer.open(features[left])
        curve = opened.curve(order, stop=lambda so_far: crossing(so_far) is not None)
        count = crossing(curve)
        if count is None:
            break
        taken = order[:count].cpu()
        found.append(left[taken])
        keep = torch.ones(len(left), dtype=torch.bool)
        keep[taken] = False
        left = left[keep]
    return found
