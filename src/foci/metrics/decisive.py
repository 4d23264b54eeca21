"""Decisive K: the fewest top tiles that suffice for a decision and without which it flips.

A rationale has two conditions: with these tiles the model predicts the target, and without them it
no longer does, ``kept.sure(kappa) & rest.lost()`` of :class:`foci.metrics.curve.Followed`. MSK asks
only for the first. ``decisive_k`` is of one slide, :func:`decisive_points` of a cohort, with the
reason where a slide has none. The last functions say which measure two rankings are compared by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve import (
    Stack,
    count_or_none,
    first_crossing,
    followed,
    followed_at,
    reached,
    stable_from,
)
from foci.metrics.inputs import Floats, Marks

_AT_ONCE = 4096  # slides
PAPER_BETA = 0.2
"""The paper's bound on the target's probability without the rationale."""

MIN_SHARE = 0.1
MIN_DECISIVE = 1 / 3


NecessityAxis = Literal["decisive K", "deletion area"]
"""What necessity is compared by."""

NOTHING_SHARED = (
    "shares no count with insert_ks", "measure insertion and deletion at the same counts",
)  # fmt: skip


def beta_bound(beta: float | None) -> float | None:
    """Check the bound on the probability that may remain; None for the flip form."""
    fix = "pass a value from 0 up to, not including, 1; None asks for a flip"
    inputs.require(beta is None or 0 <= beta < 1, "beta", f"is {beta}", fix)
    return None if beta is None else float(beta)


def _one_slide(
    insert_probs: ArrayLike,
    insert_ks: ArrayLike,
    delete_probs: ArrayLike,
    delete_ks: ArrayLike,
    target: SupportsIndex,
    kappa: float,
    beta: float | None,
) -> tuple[int | None, int | None]:
    """Decisive K and stable decisive K of one slide."""
    inserted, insert_counts, aim = inputs.curve(insert_probs, insert_ks, target)
    deleted, delete_counts, _ = inputs.curve(delete_probs, delete_ks, target, lowest=0)
    alike = inserted.shape[1] == deleted.shape[1]
    what = f"has {deleted.shape[1]} classes, insert_probs {inserted.shape[1]}"
    inputs.require(alike, "delete_probs", what, "use one classifier")
    shared, rows, places = np.intersect1d(
        insert_counts, delete_counts, assume_unique=True, return_indices=True
    )
    possible = shared.size or not (delete_counts > 0).any()  # one tile leaves none to delete
    inputs.require(possible, "delete_ks", *NOTHING_SHARED)
    sufficient = followed(inserted[rows], aim).sure(inputs.threshold(kappa))
    steps = sufficient & followed(deleted[places], aim).lost(beta_bound(beta))
    if not shared.size:
        return None, None
    return count_or_none(first_crossing(steps, shared)), count_or_none(stable_from(steps, shared))


@card(
    title="Decisive K",
    symbol=r"\mathrm{DK}_s(\kappa)",
    direction="lower",
    range=(1, math.inf),
    needs="an insertion and a deletion curve of the same ranking, with all classes",
    does_not_show="that no other set of tiles would do, or that these tiles suffice for a "
    "diagnosis; where counts were skipped it is an upper bound",
    source="the paper, Eq. problem: both conditions of a rationale; flip form by FOCI",
)
def decisive_k(
    insert_probs: ArrayLike,
    insert_ks: ArrayLike,
    delete_probs: ArrayLike,
    delete_ks: ArrayLike,
    target: SupportsIndex,
    kappa: float = 0.9,
    beta: float | None = None,
) -> int | None:
    r"""Decisive K: fewest top-ranked tiles that suffice and without which the prediction changes.

    .. math:: \mathrm{DK}_s(\kappa) = \min\{1 \le K \le \min(K_{\max}, N-1) : \arg\max_c p_c(K) = y
       \wedge p_y(K) \ge \kappa \wedge \arg\max_c p_c(\text{without the top } K) \ne y\}

    With ``beta`` the last condition is the paper's,
    :math:`p_y(\text{without the top } K) \le \beta` with :math:`\beta = 0.2`. Only counts known in
    both directions are candidates, so on a grid the value is an upper bound. None where no count
    meets both conditions.

    ``insert_probs`` are the class probabilities of the top K tiles alone, at counts from 1 on,
    ``delete_probs`` those without them, at counts from 0 to below the number of tiles. Other
    arguments as in :func:`foci.metrics.msk`; the target is usually the full-bag prediction.

    >>> kept = [[0.4, 0.6], [0.05, 0.95], [0.02, 0.98]]
    >>> rest = [[0.1, 0.9], [0.3, 0.7], [0.4, 0.6], [0.7, 0.3]]
    >>> decisive_k(kept, [1, 2, 3], rest, [0, 1, 2, 3], target=1)
    3
    >>> decisive_k(kept, [1, 2, 3], rest, [0, 1, 2, 3], target=1, beta=0.2) is None
    True
    """
    return _one_slide(insert_probs, insert_ks, delete_probs, delete_ks, target, kappa, beta)[0]


@card(
    title="Stable decisive K",
    symbol=r"\mathrm{DK}^{\mathrm{stable}}_s(\kappa)",
    direction="lower",
    range=(1, math.inf),
    needs="an insertion and a deletion curve of the same ranking, with all classes",
    does_not_show="what happens at counts that were not measured",
    source="FOCI; flips can flip back",
)
def stable_decisive_k(
    insert_probs: ArrayLike,
    insert_ks: ArrayLike,
    delete_probs: ArrayLike,
    delete_ks: ArrayLike,
    target: SupportsIndex,
    kappa: float = 0.9,
    beta: float | None = None,
) -> int | None:
    r"""Smallest count from which the conditions of :func:`decisive_k` hold at every known count.

    .. math:: \min\{K : \text{the conditions of}\ \mathrm{DK}_s\ \text{hold at every known}\ K' \ge
       K\}

    >>> kept = [[0.05, 0.95]] * 3
    >>> rest = [[0.6, 0.4], [0.3, 0.7], [0.8, 0.2]]  # flips, flips back, flips again
    >>> stable_decisive_k(kept, [1, 2, 3], rest, [1, 2, 3], target=1)
    3
    """
    return _one_slide(insert_probs, insert_ks, delete_probs, delete_ks, target, kappa, beta)[1]


@card(
    title="Share of slides carried",
    symbol=r"C(K)",
    direction="higher",
    range=(0, 1),
    needs="decisive K of every slide that the model is sure of",
    does_not_show="which slides these are; a plateau below 1 is slides on which this order never "
    "finds deciding tiles",
    source="FOCI",
)
def carried_share(counts: ArrayLike, ks: ArrayLike) -> Floats:
    r"""Share of slides whose decision the first K tiles carry, at every count of ``ks``.

    .. math:: C(K) = \frac{1}{|S|} \sum_{s \in S} \frac{1}{R} \sum_{r=1}^{R}
       \mathbb{1}[\mathrm{DK}_{s,r} \le K]

    ``counts`` are decisive K, ``[S]``, or ``[R, S]`` for several orders; a slide without one is
    never carried.

    >>> carried_share([2, 9, None, 3], [1, 2, 4, 256]).tolist()
    [0.0, 0.25, 0.5, 0.75]
    """
    table, total = inputs.count_orders(counts, "counts"), np.zeros((1, len(np.atleast_1d(ks))))
    for start in range(0, table.shape[1], _AT_ONCE):  # one after the other: sums round by order
        marks = carried_marks(table[:, start : start + _AT_ONCE], ks)
        total = np.concatenate([total, marks]).sum(axis=0, keepdims=True)
    share: Floats = total[0] / table.shape[1]
    return share


def carried_marks(counts: ArrayLike, ks: ArrayLike) -> Floats:
    """``[S, K]`` share of the orders under which the first K tiles carry a slide's decision."""
    table, steps = inputs.count_orders(counts, "counts"), inputs.as_counts(ks, "ks")
    marks: Floats = np.zeros((table.shape[1], len(steps)))
    for order in table:  # one at a time: of 100,000 slides all do not fit
        marks += order[:, None] <= steps
    return marks / len(table)


@dataclass(frozen=True, eq=False)
class DecisivePoints:
    """Decisive K and stable decisive K of every slide under one ranking, ``[S]``; NaN if none.

    Attributes:
        outcome: ``"count"``; ``"beyond"`` where none was found and tiles remain beyond K_max
            (censored); ``"none"`` where N - 1 <= K_max and no known count is decisive (infinite,
            not censored); ``"not assessable"`` for a slide of one tile, which belongs
            in no denominator.
        flips_back: Whether a decisive count exists and a later one is not decisive.
    """

    count: Floats
    stable: Floats
    outcome: NDArray[np.str_]
    flips_back: Marks

    @property
    def assessable(self) -> Marks:
        """Slides of two or more tiles: the denominator of every share and quantile."""
        marks: Marks = self.outcome != "not assessable"
        return marks

    @property
    def beyond(self) -> Marks:
        """Slides censored at K_max."""
        marks: Marks = self.outcome == "beyond"
        return marks


def decisive_points(
    insert: Sequence[Stack],
    delete: Sequence[Stack],
    targets: ArrayLike,
    n_tiles: ArrayLike,
    kappa: float | ArrayLike = 0.9,
    k_max: SupportsIndex = 256,
    beta: float | None = None,
) -> DecisivePoints:
    """Decisive K, stable decisive K and outcome of every slide of a cohort.

    From the insertion and deletion curves of one ranking on S slides, the latter stacked with
    ``lowest=0`` (a slide of one tile needs none), the class followed on each, ``[S]``, its number
    of tiles, ``[S]``, and the operating confidence, one for all slides or one per slide. Counts
    above ``k_max`` are no candidates; ``beta`` as in :func:`decisive_k`.

    >>> from foci.metrics import stack
    >>> kept = stack([[[0.05, 0.95]] * 2, [[0.05, 0.95]]], [[1, 2], [1]])
    >>> rest = stack([[[0.1, 0.9], [0.7, 0.3]], [[0.1, 0.9]]], [[1, 2], [0]], lowest=0)
    >>> points = decisive_points(kept, rest, targets=[1, 1], n_tiles=[3, 1])
    >>> points.count.tolist(), points.outcome.tolist()
    ([2.0, nan], ['count', 'not assessable'])
    """
    n_classes = [part.probs.shape[2] for part in (*insert, *delete)]
    alike = len(set(n_classes)) < 2
    inputs.require(alike, "delete", "has other classes than insert", "use one classifier")
    aims = inputs.class_indices(targets, "targets", *n_classes[:1])
    sizes = inputs.as_counts(n_tiles, "n_tiles")
    n_slides = inputs.same_length(targets=aims, n_tiles=sizes)
    needed = inputs.thresholds(kappa, n_slides)
    ceiling, bound = inputs.as_int(k_max, "k_max"), beta_bound(beta)
    for parts, last in ((insert, sizes), (delete, sizes - 1)):
        for part in parts:
            smallest = part.rows[last[part.rows].argmin()]
            what, fix = "holds a count beyond the bag", "insert up to N tiles, delete up to N - 1"
            inputs.require(part.ks[-1] <= last[smallest], f"slide {smallest}, ks", what, fix)

    ks = np.unique(np.concatenate([np.array([1]), *(part.ks for part in delete)]))
    ks = ks[ks > 0]  # deletion of nothing is no candidate
    kept, rest = followed_at(insert, aims, ks), followed_at(delete, aims, ks)
    deleted = ~np.isnan(rest.confidence)
    known = deleted & ~np.isnan(kept.confidence)
    inserted = np.isin(np.arange(n_slides), np.concatenate([[-1], *(one.rows for one in insert)]))
    apart = inserted & deleted.any(axis=1) & ~known.any(axis=1)
    inputs.require(not apart.any(), f"slide {apart.argmax()}, delete_ks", *NOTHING_SHARED)
    known &= ks <= ceiling
    measured = known.any(axis=1) | (sizes == 1)
    what = "has no count up to K_max known in both directions"
    fix = "measure insertion and deletion"
    inputs.require(measured.all(), f"slide {measured.argmin()}", what, fix)

    steps = known & kept.sure(needed[:, None]) & rest.lost(bound)
    count = first_crossing(steps, ks)
    last_failing = np.max(ks * (known & ~steps), axis=1, initial=0)
    stable = first_crossing(steps & (ks > last_failing[:, None]), ks)
    conditions = [reached(count), sizes == 1, sizes - 1 > ceiling]
    outcome = np.select(conditions, ["count", "not assessable", "beyond"], default="none")
    return DecisivePoints(count, stable, outcome, reached(count) & (stable != count))


def classes_without_decisive_sets(
    counts: Sequence[ArrayLike], targets: ArrayLike
) -> tuple[int, ...]:
    """Classes in which no ranking finds a decisive set on at least 10 % of the slides.

    An absence (normal tissue) or a diffuse tumour: no top set carries the decision, so all
    rankings tie there, and those slides are left out of the necessity axis. ``counts`` are decisive
    K of the compared rankings on the assessable decided slides, each ``[S]`` or ``[R, S]`` for
    several orders, whose shares are averaged.

    >>> classes_without_decisive_sets([[3, 4, None, None], [9, 2, None, None]], [0, 0, 1, 1])
    (1,)
    """
    tables = [reached(inputs.count_orders(values, "counts")) for values in counts]
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

    Deletion area where fewer than a third of the slides have a decisive K under at least one of the
    two; over several orders, ``[R, S]``, the share is averaged.

    >>> necessity_axis([3, None, None], [None, None, None])
    'decisive K'
    >>> necessity_axis([3, None, None, None], [5, None, None, None])
    'deletion area'
    """
    first, second = (reached(inputs.count_orders(v, name)) for v, name in ((a, "a"), (b, "b")))
    inputs.same_length(a=first[0], b=second[0])
    either = (first[:, None] | second[None]).mean()
    return "deletion area" if either < MIN_DECISIVE - 1e-12 else "decisive K"


def already_minimal(msks: ArrayLike) -> bool:
    """Whether a ranking's median MSK is 1, so that no other can need fewer tiles.

    It is that of the ranking compared *with*. A missing count is infinite, and the counts of
    several orders, ``[R, S]``, are pooled.

    >>> already_minimal([1, 1, 7]), already_minimal([1, 2, None])
    (True, False)
    """
    pooled = inputs.count_orders(msks, "msks").ravel()
    return bool(np.median(np.where(reached(pooled), pooled, np.inf)) == 1)
