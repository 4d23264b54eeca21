"""Reveal tiles upwards until a question is answered, then only at the counts of a grid.

The first crossing of a threshold depends on no count beyond it. A classifier without a closed form
therefore reveals 1, 2, 3, ... tiles in blocks and stops at the block in which everything asked for
has crossed; a coarse grid beyond is enough for the shape of the curve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from foci.errors import FociError
from foci.reveal.arguments import check_order
from foci.reveal.embedded_bag import EmbeddedBag

WIDEST_BLOCK = 16
"""Counts that are revealed at once; the first blocks are shorter: 1, 2 to 3, 4 to 7, 8 to 15."""


def curve_until(
    bag: EmbeddedBag,
    order: Tensor | Sequence[int],
    settled: Callable[[Tensor], bool],
    last: int,
    beyond: Sequence[int] = (),
) -> tuple[Tensor, Tensor]:
    """Counts and probabilities of one order: every count until ``settled``, then a grid.

    Args:
        bag: Of any classifier.
        order: Tile indices, most important first.
        settled: Called with the probabilities ``[k, C]`` of the counts 1..k after every block.
        last: Largest count of the search, at most N.
        beyond: Counts up to ``last`` that are revealed in any case; ``last`` is always one of them.

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
    for block in _blocks(last):
        found = torch.cat([found, bag.curve(checked, block)])
        if settled(found):
            break
    walked = len(found)
    rest = sorted({k for k in (*beyond, last) if walked < k <= last})
    if rest:
        found = torch.cat([found, bag.curve(checked, rest)])
    return torch.tensor([*range(1, walked + 1), *rest]), found


def _blocks(last: int) -> Iterator[range]:
    start, size = 1, 1
    while start <= last:
        yield range(start, min(start + size, last + 1))
        start, size = start + size, min(2 * size, WIDEST_BLOCK)
