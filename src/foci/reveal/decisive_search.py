"""The fewest tiles that suffice and are needed, from an insertion curve and few deletions.

A deletion leaves almost the whole bag and costs almost an inference, an insertion of k tiles next
to nothing. Tiles are therefore deleted only at counts whose tiles suffice: at every other count
decisive K is out of the question, whatever deletion would say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from foci.reveal.arguments import check_order
from foci.reveal.embedded_bag import EmbeddedBag
from foci.reveal.refinement import Search, grid_counts

Test = Callable[[Tensor], bool]
"""Probabilities ``[C]`` to whether they meet a condition."""

ONE_BY_ONE = 2
"""Up to so many counts between a failing and a holding one are tried one by one."""


def decisive_curves(
    bag: EmbeddedBag,
    order: Tensor | Sequence[int],
    inserted: Mapping[int, Tensor],
    enough: Sequence[Test],
    lost: Test,
    *,
    grid: Sequence[int],
    reported: Sequence[int] = (),
    one_by_one: int = ONE_BY_ONE,
) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
    """Both curves by count, with the deletions that the smallest decisive count needs.

    Decisive is the smallest count k of which ``enough`` holds for the first k tiles and ``lost``
    for the others. It is looked for up a grid, then between the last count that failed and the
    first that held. Curves are not monotone, so what is found is an upper bound.

    Args:
        bag: Of any classifier.
        order: Tile indices, most important first.
        inserted: Probabilities ``[C]`` of the first k tiles, by k, as far as they are known.
        enough: Conditions on the first k tiles, each with a smallest count of its own.
        lost: Condition on the tiles that are left.
        grid: Increasing counts from 1 on; ends at N - 1 at the latest.
        reported: Counts that are deleted in any case.
        one_by_one: Largest gap that is not halved.

    Returns:
        Insertion and deletion by count: what was known, and what the search added.
    """
    checked = check_order(order, len(bag))
    kept, left = dict(inserted), dict[int, Tensor]()

    def delete(counts: Sequence[int]) -> None:
        left.update(zip(counts, bag.curve(checked, counts, "delete"), strict=True))

    wanted = sorted({k for k in reported if 1 <= k < len(bag)})
    if wanted:
        delete(wanted)
    for suffices in enough:
        search = Search(grid_counts(grid, len(bag)), one_by_one)
        search.answers = {k: False for k, p in kept.items() if k < len(bag) and not suffices(p)}
        search.answers |= {k: lost(left[k]) for k, p in kept.items() if k in left and suffices(p)}
        while (count := search.next()) is not None:
            if count not in kept:
                kept[count] = bag.curve(checked, [count])[0]
            if suffices(kept[count]) and count not in left:
                delete([count])
            search.answers[count] = suffices(kept[count]) and lost(left[count])
    return kept, left
