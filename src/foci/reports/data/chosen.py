"""Which slides a page can carry in full."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


def by_interest(hardest_first: Sequence[int] | NDArray[np.int64]) -> list[int]:
    """Slides in the order in which they are worth their bytes.

    In turn the hardest, the most compact, and the one that best fills the widest gap between.

    >>> by_interest([10, 11, 12, 13, 14, 15, 16])
    [10, 16, 13, 11, 15, 12, 14]
    """
    ranked = [int(slide) for slide in hardest_first]
    turns = itertools.zip_longest(ranked, reversed(ranked), _spread(ranked))
    return list(dict.fromkeys(slide for turn in turns for slide in turn if slide is not None))


def within_bytes(
    slides: Sequence[int], sizes: Sequence[int] | Mapping[int, int], limit: int
) -> list[int]:
    """As many slides from the start as fit, in ascending order; at least one.

    Args:
        slides: In order of interest.
        sizes: Bytes of every slide, by its index.
        limit: Bytes in all.

    >>> within_bytes([2, 0, 1], sizes=[40, 40, 40], limit=100)
    [0, 2]
    """
    totals = itertools.accumulate(sizes[slide] for slide in slides)
    fitting = sum(1 for total in totals if total <= limit)
    return sorted(slides[: max(fitting, 1)])


def _spread(ranked: Sequence[int]) -> Iterator[int]:
    """Middle, quarters, eighths, ... of the ranks."""
    parts = 2
    while parts < 2 * len(ranked):
        yield from (ranked[len(ranked) * odd // parts] for odd in range(1, parts, 2))
        parts *= 2
