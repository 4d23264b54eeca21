"""Decisive K of a whole cohort at once, with the reason where a slide has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.errors import FociError
from foci.metrics import inputs
from foci.metrics.cohort.stacked import Stack
from foci.metrics.curve.decisive import beta_bound, decisive_steps, shared_counts
from foci.metrics.curve.stability import stable_from
from foci.metrics.curve.sufficiency import first_crossing, reached
from foci.metrics.inputs import Floats, Integers, Marks

Outcome = Literal["count", "beyond", "none", "not assessable"]
"""What became of a slide: see :class:`DecisivePoints`."""


@dataclass(frozen=True, eq=False)
class DecisivePoints:
    """Decisive K of every slide under one ranking, ``[S]`` each.

    Attributes:
        count: :func:`foci.metrics.decisive_k`; NaN where there is none.
        stable: :func:`foci.metrics.stable_decisive_k`; NaN where there is none.
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

    @property
    def flip_back_share(self) -> float:
        """Share of the slides with a decisive K whose conditions fail again; NaN without any."""
        found = reached(self.count)
        return float(self.flips_back[found].mean()) if found.any() else float("nan")


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

    Args:
        insert: Insertion curves of the S slides.
        delete: Deletion curves of the same ranking, stacked with ``lowest=0``. A slide of one tile
            needs none.
        targets: ``[S]`` the class followed on each slide.
        n_tiles: ``[S]`` candidate tiles.
        kappa: Operating confidence, one for all slides or one per slide.
        k_max: Counts above it are no candidates.
        beta: None for the flip form; a bound on the remaining probability for the paper's form.

    >>> from foci.metrics import stack
    >>> kept = stack([[[0.05, 0.95]] * 2, [[0.05, 0.95]]], [[1, 2], [1]])
    >>> rest = stack([[[0.1, 0.9], [0.7, 0.3]], [[0.1, 0.9]]], [[1, 2], [0]], lowest=0)
    >>> points = decisive_points(kept, rest, targets=[1, 1], n_tiles=[3, 1])
    >>> points.count.tolist(), points.outcome.tolist()
    ([2.0, nan], ['count', 'not assessable'])
    """
    followed = inputs.class_indices(targets, "targets")
    sizes = inputs.bag_sizes(n_tiles)
    n_slides = inputs.same_length(targets=followed, n_tiles=sizes)
    needed = inputs.thresholds(kappa, n_slides)
    ceiling, bound = inputs.whole(k_max, "k_max"), beta_bound(beta)
    count, stable = np.full((2, n_slides), np.nan)
    for rows, shared, kept, left in _candidates(insert, delete, followed, sizes, ceiling):
        steps = decisive_steps(kept, left, followed[rows], needed[rows], bound)
        count[rows], stable[rows] = first_crossing(steps, shared), stable_from(steps, shared)
    return DecisivePoints(
        count, stable, _outcomes(count, sizes, ceiling), reached(count) & (stable != count)
    )


def decisive_counts(
    insert: Sequence[Stack],
    delete: Sequence[Stack],
    targets: Integers,
    n_tiles: Integers,
    kappas: Floats,
    k_max: int,
) -> Floats:
    """Decisive K at several thresholds, ``[T, S]``: :func:`decisive_points` of each, in one go.

    Args:
        insert: Insertion curves of the S slides.
        delete: Deletion curves of the same ranking.
        targets: ``[S]`` the class followed on each slide.
        n_tiles: ``[S]`` candidate tiles.
        kappas: ``[T, S]`` operating confidence of each slide at each threshold.
        k_max: Counts above it are no candidates.
    """
    counts = np.full(kappas.shape, np.nan)
    for rows, shared, kept, left in _candidates(insert, delete, targets, n_tiles, k_max):
        steps = decisive_steps(kept, left, targets[rows], kappas[:, rows])
        counts[:, rows] = first_crossing(steps, shared)
    return counts


def _candidates(
    insert: Sequence[Stack],
    delete: Sequence[Stack],
    targets: Integers,
    sizes: Integers,
    k_max: int,
) -> Iterator[tuple[Integers, Integers, Floats, Floats]]:
    """Slides with the counts known in both directions, and both their curves at these counts."""
    measured = sizes == 1
    for rows, inserted, deleted in _pairs(insert, delete, len(sizes)):
        inputs.class_indices(targets[rows], "targets", inserted.probs.shape[2])
        in_bag = inserted.ks[-1] <= sizes[rows].min() and deleted.ks[-1] < sizes[rows].min()
        what, fix = "holds a count beyond the bag", "insert up to N tiles, delete up to N - 1"
        inputs.require(in_bag, f"slide {rows[sizes[rows].argmin()]}, ks", what, fix)
        try:
            shared, kept, left = shared_counts(inserted.ks, deleted.ks)
        except FociError as error:
            raise FociError(f"slide {rows[0]}, {error.where}", error.what, error.fix) from error
        kept, left, shared = (part[shared <= k_max] for part in (kept, left, shared))
        if shared.size:
            measured[rows] = True
            yield rows, shared, _at(inserted.probs, kept), _at(deleted.probs, left)
    missing = f"slide {measured.argmin()}"
    what = "has no count up to K_max known in both directions"
    inputs.require(measured.all(), missing, what, "measure insertion and deletion")


def _at(probs: Floats, steps: Integers) -> Floats:
    """``[B, K', C]`` curves at increasing steps; neighbouring ones are not copied."""
    first, last = int(steps[0]), int(steps[-1])
    run: slice | Integers = slice(first, last + 1) if last - first < len(steps) else steps
    return probs[:, run]


def _outcomes(count: Floats, sizes: Integers, k_max: int) -> NDArray[np.str_]:
    """The outcome of every slide, see :class:`DecisivePoints`."""
    conditions = [reached(count), sizes == 1, sizes - 1 > k_max]
    return np.select(conditions, ["count", "not assessable", "beyond"], default="none")


def _pairs(
    insert: Sequence[Stack], delete: Sequence[Stack], n_slides: int
) -> Iterator[tuple[Integers, Stack, Stack]]:
    """Slides that share both their insertion and their deletion counts, with their curves."""
    part_of, place_of = np.full((2, n_slides), -1)
    for index, part in enumerate(delete):
        part_of[part.rows], place_of[part.rows] = index, np.arange(len(part.rows))
    for part in insert:
        partners = part_of[part.rows]
        for index in np.unique(partners[partners >= 0]):
            chosen, other = partners == index, delete[index]
            if np.array_equal(part.rows, other.rows):
                rows, inserted, deleted = part.rows, part.probs, other.probs
            else:
                rows = part.rows[chosen]
                inserted, deleted = part.probs[chosen], other.probs[place_of[rows]]
            alike = inserted.shape[2] == deleted.shape[2]
            inputs.require(alike, "delete", "has other classes than insert", "use one classifier")
            yield rows, Stack(rows, part.ks, inserted), Stack(rows, other.ks, deleted)
