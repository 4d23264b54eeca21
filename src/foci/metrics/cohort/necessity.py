"""When an axis counts: room on MSK, decisive K or deletion area, classes with decisive sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cohort.orders import count_orders
from foci.metrics.curve.sufficiency import reached

NecessityAxis = Literal["decisive K", "deletion area"]
"""What necessity is compared by."""

MIN_SHARE = 0.1
MIN_DECISIVE = 1 / 3


def classes_without_decisive_sets(
    counts: Sequence[ArrayLike], targets: ArrayLike
) -> tuple[int, ...]:
    """Classes in which no ranking finds a decisive set on at least 10 % of the slides.

    An absence (normal tissue) or a diffuse tumour: no top set carries the decision, so all
    rankings tie there, and those slides are left out of the necessity axis.

    Args:
        counts: Decisive K of the compared rankings on the assessable decided slides, each ``[S]``
            or ``[R, S]`` for several orders, whose shares are averaged.
        targets: ``[S]`` the class followed on each slide.

    >>> classes_without_decisive_sets([[3, 4, None, None], [9, 2, None, None]], [0, 0, 1, 1])
    (1,)
    """
    tables = [reached(count_orders(values, "counts")) for values in counts]
    inputs.require(tables, "counts", "is empty", "pass at least one ranking")
    followed = inputs.class_indices(targets, "targets")
    for table in tables:
        inputs.same_length(counts=table[0], targets=followed)
    return tuple(
        int(label)
        for label in np.unique(followed)
        if max(table[:, followed == label].mean() for table in tables) < MIN_SHARE
    )


def necessity_axis(a: ArrayLike, b: ArrayLike) -> NecessityAxis:
    """Necessity axis of two rankings: decisive K, or deletion area where that is too rare.

    Deletion area where fewer than a third of the slides have a decisive K under either ranking,
    that is, under at least one of the two; over several orders the share is averaged.

    Args:
        a: ``[S]`` or ``[R, S]`` decisive K, NaN where there is none.
        b: The same slides under the other ranking.

    >>> necessity_axis([3, None, None], [None, None, None])
    'decisive K'
    >>> necessity_axis([3, None, None, None], [5, None, None, None])
    'deletion area'
    """
    first, second = (reached(count_orders(v, name)) for v, name in ((a, "a"), (b, "b")))
    inputs.same_length(a=first[0], b=second[0])
    either = (first[:, None] | second[None]).mean()
    return "deletion area" if either < MIN_DECISIVE - 1e-12 else "decisive K"


def already_minimal(msks: ArrayLike) -> bool:
    """Whether a ranking's median MSK is 1, so that no other can need fewer tiles.

    Args:
        msks: ``[S]`` or ``[R, S]`` MSK of the ranking compared *with*, NaN where not reached. The
            counts of several orders are pooled; a missing count is infinite.

    >>> already_minimal([1, 1, 7]), already_minimal([1, 2, None])
    (True, False)
    """
    pooled = count_orders(msks, "msks").ravel()
    return bool(np.median(np.where(reached(pooled), pooled, np.inf)) == 1)
