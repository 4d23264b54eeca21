"""Find a crossing, or the fewest decisive tiles, without computing every count.

The first crossing of a threshold depends on no count beyond it: :func:`curve_until` reveals 1, 2,
3, ... tiles in blocks and stops at the block in which everything asked for has crossed; a coarse
grid beyond is sufficient for the shape of the curve.

A deletion leaves almost the whole bag and costs almost an inference, an insertion of k tiles next
to nothing. :func:`decisive_curves` therefore deletes only at counts whose tiles suffice: at every
other count decisive K is out of the question, whatever deletion would say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from foci.errors import FociError
from foci.reveal.bag import EmbeddedBag
from foci.reveal.engines import at_least_one, check_order

Condition = Callable[[Tensor], bool]
"""Probabilities ``[C]`` to whether they meet it."""

ONE_BY_ONE = 2
"""Up to so many counts between a failing and a holding one are tried one by one."""

WIDEST_BLOCK = 16
"""Counts that are revealed at once; the first blocks are shorter: 1, 2 to 3, 4 to 7, 8 to 15."""


def curve_until(
    bag: EmbeddedBag,
    order: Tensor | Sequence[int],
    settled: Callable[[Tensor], bool],
    last: int,
    beyond: Sequence[int] = (),
    most: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Counts and probabilities of one order: every count until ``settled``, then a grid.

    Args:
        bag: Of any classifier.
        order: Tile indices, most important first.
        settled: Called with the probabilities ``[k, C]`` of the counts 1..k after every block.
        last: Largest count of the search, at most N.
        beyond: Counts up to ``last`` that are revealed in any case; ``last`` is always one of them.
        most: Tiles to forward before the grid takes over, settled or not; None for any number.

    Returns:
        ``[J]`` counts, and ``[J, C]`` probabilities in float64.

    >>> from foci.backbones import CallableBackbone
    >>> model = CallableBackbone(lambda x: torch.stack([x.sum() - 4.5, 4.5 - x.sum()]), 1, 2)
    >>> bag = EmbeddedBag(model, torch.ones(40, 1))
    >>> over = lambda probabilities: bool((probabilities[:, 0] > 0.5).any())
    >>> curve_until(bag, range(40), over, last=40, beyond=[4, 32])[0].tolist()
    [1, 2, 3, 4, 5, 6, 7, 32, 40]
    """
    checked = check_order(order, len(bag))
    if not 1 <= last <= len(bag):
        raise FociError("last", f"is {last} for {len(bag)} tiles", "give a count of the bag")
    found = torch.empty(0, bag.backbone.n_classes, dtype=torch.float64)
    size, spent = 1, 0
    while len(found) < last:
        block = range(len(found) + 1, min(len(found) + size, last) + 1)
        spent += sum(block)
        if most is not None and spent > most and len(found):
            break
        found = torch.cat([found, bag.curve(checked, block)])
        if settled(found):
            break
        size = min(2 * size, WIDEST_BLOCK)
    walked = len(found)
    rest = sorted({k for k in (*beyond, last) if walked < k <= last})
    if rest:
        found = torch.cat([found, bag.curve(checked, rest)])
    return torch.tensor([*range(1, walked + 1), *rest]), found


def decisive_curves(
    bag: EmbeddedBag,
    order: Tensor | Sequence[int],
    inserted: Mapping[int, Tensor],
    sufficient: Sequence[Condition],
    flipped: Condition,
    *,
    grid: Sequence[int],
    reported: Sequence[int] = (),
    most: int | None = None,
) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
    """Both curves by count, with the deletions that the smallest decisive count needs.

    Decisive is the smallest count k of which ``sufficient`` holds for the first k tiles and
    ``flipped`` for the others. It is looked for up a grid, then between the last count that failed
    and the first that held. Curves are not monotone, so what is found is an upper bound.

    Args:
        bag: Of any classifier.
        order: Tile indices, most important first.
        inserted: Probabilities ``[C]`` of the first k tiles, by k, as far as they are known.
        sufficient: Conditions on the first k tiles, each with a smallest count of its own.
        flipped: Condition on the tiles that are left.
        grid: Increasing counts from 1 on; ends at N - 1 at the latest.
        reported: Counts that are deleted in any case.
        most: Tiles to forward before the search ends with what it has; None for any number.

    Returns:
        Insertion and deletion by count: what was known, and what the search added.
    """
    checked = check_order(order, len(bag))
    kept, left = dict(inserted), dict[int, Tensor]()
    wanted = sorted({k for k in reported if 1 <= k < len(bag)})
    if wanted:
        left.update(zip(wanted, bag.curve(checked, wanted, "delete"), strict=True))
    spent = sum(len(bag) - k for k in wanted)
    for suffices in sufficient:
        counts = _grid_counts(grid, len(bag))
        answers = {k: False for k, p in kept.items() if k < len(bag) and not suffices(p)}
        answers |= {k: flipped(left[k]) for k, p in kept.items() if k in left and suffices(p)}
        while (count := _next_count(counts, answers)) is not None:
            if most is not None and spent >= most:
                return kept, left
            if count not in kept:
                kept[count], spent = bag.curve(checked, [count])[0], spent + count
            if suffices(kept[count]) and count not in left:
                left[count] = bag.curve(checked, [count], "delete")[0]
                spent += len(bag) - count
            answers[count] = suffices(kept[count]) and flipped(left[count])
    return kept, left


def refined(
    bag: EmbeddedBag,
    order: Tensor | Sequence[int],
    inserted: Mapping[int, Tensor],
    conditions: Sequence[Condition],
) -> dict[int, Tensor]:
    """Insertion by count, with more counts before the first of a grid at which a condition holds.

    What is found is an upper bound: curves are not monotone, and the grid may have missed a count.
    """
    kept = dict(inserted)
    for holds in conditions:
        while (count := _next_count([], {k: holds(p) for k, p in kept.items()})) is not None:
            kept[count] = bag.curve(order, [count])[0]
    return kept


def _next_count(grid: list[int], answers: Mapping[int, bool]) -> int | None:
    """The count to try next, given whether others hold; None if nothing is left to refine."""
    top = min((k for k, holds in answers.items() if holds), default=None)
    if top is None:
        return next((k for k in grid if k not in answers), None)
    below = max((k for k in answers if k < top), default=0)
    between = top - below - 1
    if not between:
        return None
    return below + 1 if between <= ONE_BY_ONE else (below + top) // 2


def _grid_counts(grid: Sequence[int], n_tiles: int) -> list[int]:
    """Counts of the grid that leave a tile, and N - 1 where the grid reaches beyond it."""
    counts = [at_least_one(k, "grid") for k in grid]
    if not counts or any(b <= a for a, b in pairwise(counts)):
        raise FociError("grid", "is not increasing", "sort the counts and drop repetitions")
    last = min(counts[-1], n_tiles - 1)
    return [k for k in counts if k < last] + [last] * (last > 0)
