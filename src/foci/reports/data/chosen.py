"""Choose the slides whose curves a page embeds, within a byte limit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


def by_interest(hardest_first: Sequence[int] | NDArray[np.int64]) -> list[int]:
    """Order slides by interest: the hardest, the most compact and one in between, in turn.

    Those in between are the slides at the middle, the quarters, the eighths, ... of the list.

    >>> by_interest([10, 11, 12, 13, 14, 15, 16])
    [10, 16, 13, 11, 15, 12, 14]
    """
    ranked = [int(slide) for slide in hardest_first]
    turns = itertools.zip_longest(ranked, reversed(ranked), _spread(ranked))
    return list(dict.fromkeys(slide for turn in turns for slide in turn if slide is not None))


def within_bytes(
    slides: Sequence[int], sizes: Sequence[int] | Mapping[int, int], limit: int
) -> list[int]:
    """Take slides from the start while they fit into the limit, at least one; sorted.

    Args:
        slides: Indices of slides, in order of interest.
        sizes: Bytes of every slide, by its index.
        limit: Bytes of all slides together.

    >>> within_bytes([2, 0, 1], sizes=[40, 40, 40], limit=100)
    [0, 2]
    """
    totals = itertools.accumulate(sizes[slide] for slide in slides)
    fitting = sum(1 for total in totals if total <= limit)
    return sorted(slides[: max(fitting, 1)])


def _spread(ranked: Sequence[int]) -> Iterator[int]:
    """Slides at the middle, the quarters, the eighths, ... of the ranked list."""
    parts = 2
    while parts < 2 * len(ranked):
        yield from (ranked[len(ranked) * odd // parts] for odd in range(1, parts, 2))
        parts *= 2
