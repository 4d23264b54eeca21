"""Disjoint sufficient sets: how many separate rationales a slide has."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from foci.reveal.revealer import Revealer


def disjoint_sufficient_sets(
    revealer: Revealer,
    features: Tensor,
    rank: Callable[[Tensor], Tensor],
    crossing: Callable[[Tensor], int | None],
    *,
    most: int = 8,
) -> list[Tensor]:
    """Sufficient sets with no tile in common, one after the other.

    The tiles are ranked and revealed until the curve crosses. The revealed tiles are removed, the
    remaining ones are ranked and revealed again, and so on until they no longer suffice.

    Args:
        revealer: Of the frozen classifier.
        features: ``[N, D]`` of one bag.
        rank: Maps the features of the remaining tiles, in bag order, to their reveal order.
        crossing: Maps probabilities ``[J, C]`` at counts 1..J to the count that suffices, or None.
            The paper's condition:
            ``lambda p: foci.metrics.msk(p, range(1, len(p) + 1), target)``.
        most: Stop after this many sets.

    Returns:
        Tile indices of every set, in reveal order; empty if even all tiles do not suffice.
    """
    remaining = torch.arange(len(features))
    sets: list[Tensor] = []
    while len(sets) < most and len(remaining):
        order = rank(features[remaining])
        embedded = revealer.open(features[remaining])
        curve = embedded.curve(order, stop=lambda so_far: crossing(so_far) is not None)
        count = crossing(curve)
        if count is None:
            break
        revealed = order[:count].cpu()
        sets.append(remaining[revealed])
        keep = torch.ones(len(remaining), dtype=torch.bool)
        keep[revealed] = False
        remaining = remaining[keep]
    return sets
