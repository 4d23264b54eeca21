"""The smallest count that meets a condition, from a grid of counts and refinement between them.

A pooling classifier gives every count at once. Any other one forwards each subset, and the tiles
that deletion leaves are almost the whole bag: 256 counts cost 256 inferences. Here counts are
evaluated up a grid until the condition holds, and then between the last count at which it failed
and the first at which it held.

Curves are not monotone. A condition that holds at a count below may fail at a grid count, so the
answer is an upper bound, unless every smaller count has been evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from foci.errors import FociError
from foci.reveal.arguments import at_least_one, check_order
from foci.reveal.curves import GRID
from foci.reveal.embedded_bag import EmbeddedBag

DENSE = 8
"""Up to so many counts between two evaluated ones are evaluated one by one, more are bisected."""

Condition = Callable[[Tensor, Tensor], bool]
"""Probabilities ``[C]`` of the first k tiles and ``[C]`` without them to whether k suffices."""


@dataclass(frozen=True)
class RefinedCount:
    """The smallest evaluated count that meets a condition.

    Attributes:
        count: None if no evaluated count does.
        exact: Whether every smaller count has been evaluated. Otherwise the count is an upper
            bound, and None means that no count of the grid meets the condition.
    """

    count: int | None
    exact: bool


@dataclass(frozen=True, eq=False)
class RefinedCurves:
    """All evaluated counts in both directions, and what the conditions make of them.

    Attributes:
        ks: ``[J]`` increasing counts, each revealed and deleted.
        insert: ``[J, C]`` probabilities of the first k tiles.
        delete: ``[J, C]`` probabilities without the first k tiles.
        found: The smallest count for every condition.
    """

    ks: Tensor
    insert: Tensor
    delete: Tensor
    found: tuple[RefinedCount, ...]


def refined_curves(
    bag: EmbeddedBag,
    order: Tensor | Sequence[int],
    conditions: Sequence[Condition],
    *,
    grid: Sequence[int] = GRID,
    dense: int = DENSE,
) -> RefinedCurves:
    """Both curves of one order at as few counts as the smallest count of every condition needs.

    Counts run up to the last of the grid or N - 1, because without all tiles there is no bag. No
    count is evaluated twice, and all answers are read from all counts: the same curves, stored and
    read again, give the same answers.

    Args:
        bag: Of any classifier. For pooling classifiers,
            :meth:`EmbeddedBag.both_curves` at every count is cheaper and exact.
        order: Tile indices, most important first.
        conditions: At least one.
        grid: Increasing counts from 1 on.
        dense: Largest number of counts in a gap that are evaluated one by one.

    >>> from foci.backbones import CallableBackbone
    >>> model = CallableBackbone(lambda x: torch.stack([x.sum() - 6.5, 6.5 - x.sum()]), 1, 2)
    >>> bag = EmbeddedBag(model, torch.ones(14, 1))
    >>> curves = refined_curves(bag, range(14), [lambda kept, left: bool(kept[0] > 0.5)])
    >>> curves.ks.tolist(), curves.found
    ([1, 2, 3, 4, 6, 7, 8], (RefinedCount(count=7, exact=False),))
    """
    if not conditions:
        raise FociError("conditions", "are empty", "give at least one")
    order, dense = check_order(order, len(bag)), at_least_one(dense, "dense")
    searches = [Search(grid_counts(grid, len(bag)), dense) for _ in conditions]
    known: dict[int, tuple[Tensor, Tensor]] = {}
    while (count := next((k for s in searches if (k := s.next()) is not None), None)) is not None:
        inserted, deleted = bag.both_curves(order, [count], [count])
        known[count] = inserted[0], deleted[0]
        for search, condition in zip(searches, conditions, strict=True):
            search.answers[count] = bool(condition(inserted[0], deleted[0]))
    ks = sorted(known)
    nothing = torch.empty(0, bag.backbone.n_classes, dtype=torch.float64)
    insert, delete = (
        torch.stack([known[k][side] for k in ks]) if ks else nothing for side in (0, 1)
    )
    found = tuple(search.found() for search in searches)
    return RefinedCurves(torch.tensor(ks, dtype=torch.long), insert, delete, found)


class Search:
    """Which count one condition needs next, given the answers so far.

    Attributes:
        answers: Whether the condition holds, by count; filled by the caller.

    Args:
        grid: Counts to try first.
        dense: Up to so many counts between two evaluated ones are tried one by one.
    """

    def __init__(self, grid: list[int], dense: int) -> None:
        self.grid, self.dense = grid, dense
        self.answers: dict[int, bool] = {}

    def next(self) -> int | None:
        """The next count to evaluate, or None if there is nothing left to refine."""
        top = self._smallest()
        if top is None:
            return next((k for k in self.grid if k not in self.answers), None)
        below = max((k for k in self.answers if k < top), default=0)
        between = top - below - 1
        if not between:
            return None
        return below + 1 if between <= self.dense else (below + top) // 2

    def found(self) -> RefinedCount:
        """The smallest count that holds, so far."""
        top = self._smallest()
        last = max(self.grid, default=0) if top is None else top
        return RefinedCount(top, all(k in self.answers for k in range(1, last + 1)))

    def _smallest(self) -> int | None:
        return min((k for k, holds in self.answers.items() if holds), default=None)


def grid_counts(grid: Sequence[int], n_tiles: int) -> list[int]:
    """Counts of the grid that leave a tile, and N - 1 where the grid reaches beyond it."""
    counts = [at_least_one(k, "grid") for k in grid]
    if not counts or any(b <= a for a, b in pairwise(counts)):
        raise FociError("grid", "is not increasing", "sort the counts and drop repetitions")
    last = min(counts[-1], n_tiles - 1)
    return [k for k in counts if k < last] + [last] * (last > 0)
