"""Ranking jobs, and the counts of tiles at which each is revealed and deleted.

A job is one ranking with one seed, or all random orders, computed together. A classifier with a
closed form gives every count for next to nothing, and gets every count to the end of the slide; of
those beyond the largest reveal count it keeps a geometric grid and the first that decide. For any
other one counts are spent where they change an answer:

* Insertion runs through every count until the thresholds that matter are crossed: MSK, Reach and
  everything that rests on them are exact. Beyond, a grid gives the areas and the shape. An order
  that has spent its passes (``WALKED``) goes on with the grid, refined where it first crosses: its
  MSK is an upper bound, and counted as one.
* Deletion, where every count costs almost an inference, takes the counts that are reported, and
  those that decisive K needs, on a grid to half of the slide, with refinement: an upper bound. On
  a small bag it takes every count. Of the random orders, the first ``DELETED_ORDERS`` are deleted.

With the setting ``dense`` every order of every classifier gets every count in both directions; of
a large bag without a closed form, every count up to ``k_max`` and the grid beyond. The profile of
the paper reveals every count of any classifier, as its tables do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.audits.folder import column
from foci.audits.null_maps import NullMaps
from foci.audits.settings import (
    KEPT,
    RANDOM,
    SELECTOR,
    SHARE,
    SHARES,
    AuditSettings,
    null_counts,
)
from foci.metrics.cohort import adaptive_budget
from foci.metrics.curve import followed
from foci.metrics.decisive import PAPER_BETA
from foci.rankings import NULL_MAPS, SINGLE_SEEDS, Ranking, score
from foci.rankings.controls import random_scores
from foci.reveal import GRID, Direction, EmbeddedBag, curve_until, decisive_curves
from foci.reveal.search import refined
from foci.selectors import FittedSelector


@dataclass(frozen=True)
class RankingJob:
    """One ranking to compute on every slide: a column of the audit.

    Attributes:
        seed: Seed of the selector; None for all other rankings.
        selectors: The selector of that seed; of all seeds, where the ranking is their mean rank.
        orders: Number of random orders; 0 for all other rankings.
        method: How tiles are scored, where that is not the ranking of this name.
        null_maps: The content-free maps, where the job is all of them.
        options: Options of the method, besides the selector.
    """

    ranking: str
    seed: int | None = None
    selectors: tuple[FittedSelector, ...] = ()
    orders: int = 0
    method: str | None = None
    null_maps: NullMaps | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def column(self) -> str:
        """Name of the job in tables and partial results."""
        return column(self.ranking, self.seed)

    @property
    def stored(self) -> bool:
        """Whether scores are stored; random orders can be drawn again from their seeds."""
        return not self.orders and self.null_maps is None

    def rank(self, bag: EmbeddedBag) -> list[tuple[int | None, Ranking]]:
        """Rank the tiles of one bag; one ranking per seed."""
        if self.orders:  # a random order asks nothing of the classifier
            drawn = (random_scores(bag.bag, bag.slide_id, len(bag), i) for i in range(self.orders))
            return [(i, Ranking(RANDOM, bag.slide_id, scores)) for i, scores in enumerate(drawn)]
        selected = [score(SELECTOR, bag.backbone, bag, selector=one) for one in self.selectors]
        if selected:
            return [(self.seed, selected[0] if len(selected) == 1 else mean_rank(selected))]
        method = self.method or self.ranking
        return [(self.seed, score(method, bag.backbone, bag, **self.options))]


def columns_of(jobs: Sequence[RankingJob]) -> dict[str, list[str]]:
    """Columns of every ranking, one per seed.

    >>> columns_of([RankingJob("selector", 0), RankingJob("selector", 1), RankingJob("native")])
    {'selector': ['selector-0', 'selector-1'], 'native': ['native']}
    """
    columns: dict[str, list[str]] = {}
    for job in jobs:
        columns.setdefault(job.ranking, []).append(job.column)
    return columns


def mean_rank(rankings: Sequence[Ranking]) -> Ranking:
    """Rank tiles by their mean rank over several rankings of one slide, smallest first.

    >>> import numpy as np
    >>> rows = ([3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [1.0, 3.0, 2.0])
    >>> mean_rank([Ranking("selector", "s", np.array(row)) for row in rows]).order.tolist()
    [0, 1, 2]
    """
    ranks = np.stack([ranking.ranks for ranking in rankings])
    return Ranking(rankings[0].name, rankings[0].slide_id, -ranks.mean(axis=0))


def ranking_jobs(
    settings: AuditSettings,
    selectors: Mapping[int, FittedSelector],
    null_maps: NullMaps | None = None,
) -> tuple[RankingJob, ...]:
    """List the ranking jobs of an audit, in the order of its rankings; content-free maps last.

    >>> [job.column for job in ranking_jobs(AuditSettings(rankings=("random", "native")), {})]
    ['random', 'native']
    """
    jobs: list[RankingJob] = []
    for one in settings.requested:
        name = one.name
        if name == SELECTOR:
            jobs += _selector_jobs(settings, selectors)
        elif name == RANDOM:
            jobs.append(RankingJob(name, orders=settings.random_orders))
        else:
            jobs.append(RankingJob(name, method=one.method, options=one.options))
    if null_maps is not None:
        jobs.append(RankingJob(NULL_MAPS, null_maps=null_maps))
    return tuple(jobs)


def _selector_jobs(
    settings: AuditSettings, selectors: Mapping[int, FittedSelector]
) -> list[RankingJob]:
    """The selector as the mean rank of its seeds, and each seed where that is asked for."""
    seeds = settings.seeds
    if len(seeds) == 1 or settings.seeds_as == "each":
        return [RankingJob(SELECTOR, seed, (selectors[seed],)) for seed in seeds]
    mean = RankingJob(SELECTOR, selectors=tuple(selectors[seed] for seed in seeds))
    each = [RankingJob(SINGLE_SEEDS, seed, (selectors[seed],)) for seed in seeds]
    return [mean, *(each if settings.dense else [])]


# Counts

DELETED_ORDERS = 3
"""Random orders whose tiles are deleted too; all of them if dense."""

EVERY_COUNT_UP_TO = 256
"""Tiles of a bag up to which every count is deleted; one call for all of them costs little."""

PASSES = 350
"""Most forward passes that the curves of a default audit cost per slide, whatever the orders do.

Of slides below ``PASS`` tiles, passes of so many tiles. Content-free maps come on top."""

PASS = 1024
WALKED = (16, 8)
"""Passes of an order that reveal every count, before a grid takes over: of a ranking, of a random
order."""

SEARCHED = (24, 12)
"""Passes of an order that delete tiles, before the search for decisive K ends with what it has."""

DENSE_UP_TO = 1024
"""Tiles of a bag up to which ``dense`` means every count of any classifier, to the last."""

FINE = (
    *range(1, 16),
    *range(16, 32, 2),
    *range(32, 64, 4),
    *range(64, 128, 8),
    *range(128, 257, 16),
)
"""Counts beyond the crossing for rankings that are compared; random orders have ``GRID``."""


def counts_beyond(settings: AuditSettings, n_tiles: int, *, control: bool) -> list[int]:
    """Counts that are revealed beyond the crossing, for areas, mean curves and selected-only AUC.

    >>> counts_beyond(AuditSettings(deletion=(5,)), 20, control=True)
    [1, 2, 3, 4, 5, 6, 8, 12, 16, 20]
    """
    wanted = {*(GRID if control else FINE), *settings.deletion, KEPT, adaptive_budget(n_tiles)}
    last = min(settings.k_max, n_tiles)
    return sorted({k for k in wanted if k < last} | {last})


def reveal_counts(settings: AuditSettings, n_tiles: int) -> NDArray[np.int64]:
    """Every reveal count of a slide, up to ``k_max``.

    >>> reveal_counts(AuditSettings(k_max=4), 3).tolist()
    [1, 2, 3]
    """
    return np.arange(1, min(settings.k_max, n_tiles) + 1, dtype=np.int64)


def deletion_counts(
    settings: AuditSettings, n_tiles: int, *, dense: bool, compared: bool = True
) -> NDArray[np.int64]:
    """Deletion counts of a slide: those reported or needed, and every one up to ``k_max`` if dense.

    At least one tile stays. Content-free maps are compared at counts of their own, on slides that
    have them (``compared``).

    >>> deletion_counts(AuditSettings(k_max=6, deletion=(2, 8)), 20, dense=True).tolist()
    [1, 2, 3, 4, 5, 6, 8]
    >>> deletion_counts(AuditSettings(k_max=6, deletion=(2, 5)), 20, dense=False).tolist()
    [1, 2, 5]
    """
    every = range(1, min(settings.k_max, n_tiles) + 1) if dense else ()
    beside = null_counts(n_tiles).tolist() if settings.null_maps and compared else ()
    counts = {k for k in (*every, *settings.deletion, *beside) if 0 < k < n_tiles}
    return np.array(sorted(counts), dtype=np.int64)


def decisive_grid(settings: AuditSettings, n_tiles: int) -> list[int]:
    """Counts at which decisive K is looked for first, to half of the bag.

    Those reported, every 16th of the bag up to ``k_max``, and a geometric grid beyond.

    >>> decisive_grid(AuditSettings(deletion=(1, 2, 4, 8)), 200)[:8]
    [1, 2, 4, 8, 12, 24, 36, 48]
    >>> decisive_grid(AuditSettings(), 4000)[-6:]
    [384, 576, 864, 1296, 1944, 2000]
    """
    last, step = min(settings.k_max, n_tiles - 1), max(1, n_tiles // 16)
    asked = {*settings.deletion, *range(step, last + 1, step), last}
    half = max(last, min(int(settings.last_deletion(n_tiles)), n_tiles // 2))
    return sorted({k for k in asked if k <= last} | {*far_counts(last, half, ratio=1.5)})


def far_counts(first: int, last: int, ratio: float = 1.1) -> list[int]:
    """Counts after the first one, each larger by a ratio, up to the last.

    >>> far_counts(256, 400)
    [282, 310, 341, 375, 400]
    """
    counts = []
    while first < last:
        first = min(max(first + 1, round(ratio * first)), last)
        counts.append(first)
    return counts


TAIL = 4
"""Counts of a tail: areas over the whole slide need few, and each is almost an inference."""


def tail_counts(last: int, n_tiles: int, direction: Direction) -> NDArray[np.int64]:
    """Counts from the last one of a curve to the last tile, denser where the output changes more.

    The first tiles that are kept grow by a ratio, those that are left after deletion shrink by one.
    All tiles are not among them: that is the whole slide.

    >>> tail_counts(256, 4096, "insert").tolist(), tail_counts(2048, 4096, "delete").tolist()
    ([512, 1024, 2048], [3792, 4051, 4089, 4095])
    """
    if last >= n_tiles - 1:
        return np.empty(0, dtype=np.int64)
    if direction == "insert":
        spaced = np.geomspace(max(last, 1), n_tiles, TAIL + 1)[1:-1]
    else:
        spaced = n_tiles - np.geomspace(n_tiles - last, 1, TAIL + 1)[1:]
    found = np.unique(np.minimum(np.rint(spaced).astype(np.int64), n_tiles - 1))
    return found[found > last]


def first_decisive(
    kept: NDArray[np.float64], left: NDArray[np.float64], target: int, needed: Sequence[float]
) -> set[int]:
    """Steps at which tiles first decide, at every confidence, and at which the decision flips.

    From probabilities ``[K, C]`` of the first tiles, and without them.

    >>> kept = np.array([[0.6, 0.4], [0.2, 0.8], [0.1, 0.9], [0.0, 1.0]])
    >>> left = np.array([[0.4, 0.6], [0.4, 0.6], [0.6, 0.4], [0.7, 0.3]])
    >>> first_decisive(kept, left, 1, [0.8, 0.95])
    {2, 3}
    """
    rest, enough = followed(left, target), followed(kept, target).sure(np.array(needed)[:, None])
    flips, drops = rest.lost(), rest.lost(PAPER_BETA)
    conditions = np.concatenate([flips[None], flips & enough, drops & enough])
    return {*conditions.argmax(axis=1)[conditions.any(axis=1)].tolist()}


def doubtful_steps(
    kept: NDArray[np.float64],
    left: NDArray[np.float64],
    target: int,
    needed: Sequence[float],
    margin: float,
) -> NDArray[np.int64]:
    """Steps at which rounding by ``margin`` could change what :func:`first_decisive` finds.

    Of every condition those up to the first step at which it holds beyond doubt.

    >>> kept = np.array([[0.6, 0.4], [0.2, 0.8], [0.1, 0.9], [0.0, 1.0]])
    >>> left = np.array([[0.4, 0.6], [0.501, 0.499], [0.6, 0.4], [0.7, 0.3]])
    >>> doubtful_steps(kept, left, 1, [0.7, 0.9], margin=0.01).tolist()
    [1, 2]
    """

    def follow(probs: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Lead of the target, and its probability."""
        by_class = probs.T.copy()
        own = by_class[target].copy()
        by_class[target] = 0.0
        return own - by_class.max(axis=0), own

    (lead, sure), (lost, rest) = follow(kept), follow(left)
    doubtful = np.zeros(len(kept), dtype=bool)
    limits = [lead / 2, lost / 2, rest - PAPER_BETA, *(sure - np.array(needed)[:, None])]
    if np.abs(limits).min(initial=np.inf) > 1.01 * margin:  # as nearly always
        return doubtful.nonzero()[0]
    # whether a condition holds if every error is in its favour, and against it
    cases = []
    for by in (margin, -margin):
        enough = [(lead + 2 * by >= 0) & (sure + by >= one) for one in needed]
        flips = lost - 2 * by < 0
        cases.append([flips, *(flips & one for one in enough)])
        cases[-1] += [(rest - by <= PAPER_BETA) & one for one in enough]
    for possible, certain in zip(*cases, strict=True):
        end = int(certain.argmax()) if certain.any() else len(certain)
        doubtful[:end] |= possible[:end]
    return doubtful.nonzero()[0]


Points = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Counts ``[J]`` and probabilities ``[J, C]``."""


@dataclass(frozen=True)
class AdaptiveCurves:
    """Both curves of one slide under any order, at as few counts as its numbers need.

    Attributes:
        bag: The slide, with the predicted class as its target.
        full: ``[C]`` probabilities of the full bag.
        label: Index of the true class; None if it is unknown.
        compared: Whether the slide has content-free maps to compare with.
    """

    bag: EmbeddedBag
    settings: AuditSettings
    full: NDArray[np.float64]
    label: int | None
    compared: bool = True

    @property
    def thresholds(self) -> list[float]:
        """Confidences in the predicted class at which answers rest on this slide.

        The audit's own, those of its sensitivity at which the slide is decided, and shares of the
        slide's own confidence where relative answers are asked for.
        """
        sure = float(self.full[self.bag.target])
        shares = SHARES if self.settings.relative else ()
        return [
            self.settings.kappa,
            *(kappa for kappa in self.settings.kappas if kappa <= sure),
            *(share * sure for share in shares),
        ]

    def __call__(self, order: Tensor, *, control: bool, deleted: bool) -> tuple[Points, Points]:
        """Insertion and deletion curve of one order.

        Args:
            order: Tile indices, most important first.
            control: Whether it is a random order, of which there are many: a coarser grid.
            deleted: Whether its tiles are deleted too.
        """
        n_tiles = len(self.bag)
        kept = self._inserted(order, control)
        left: dict[int, Tensor] = {}
        if deleted and 1 < n_tiles <= EVERY_COUNT_UP_TO:
            kept, left = self._deleted(order, kept)
        elif deleted and n_tiles > 1:
            reported = self._reported()
            kept, left = decisive_curves(
                self.bag,
                order,
                kept,
                [self._sufficient(kappa) for kappa in dict.fromkeys(self.thresholds)],
                self._flipped,
                grid=decisive_grid(self.settings, n_tiles),
                reported=reported.tolist(),
                most=SEARCHED[control] * max(n_tiles, PASS),
            )
        return self._points(kept), self._points(left)

    def _inserted(self, order: Tensor, control: bool) -> dict[int, Tensor]:
        """Probabilities of the first k tiles by k; by the profile of the paper, at every k."""
        n_tiles = len(self.bag)
        if self.settings.reveals_every_count:
            counts = reveal_counts(self.settings, n_tiles)
            probs = self.bag.curve(order, torch.from_numpy(counts))
            return dict(zip(counts.tolist(), probs, strict=True))
        beyond = counts_beyond(self.settings, n_tiles, control=control)
        last = min(self.settings.k_max, n_tiles)
        most = WALKED[control] * max(n_tiles, PASS)
        ks, probs = curve_until(self.bag, order, self._settled, last, beyond, most)
        kept = dict(zip(ks.tolist(), probs, strict=True))
        if len(kept) == last or self._settled(probs):
            return kept
        wanted = dict.fromkeys([self.bag.target, self.label])
        return refined(
            self.bag, order, kept,
            [self._sufficient(self.settings.kappa, aim) for aim in wanted if aim is not None],
        )  # fmt: skip

    def _deleted(
        self, order: Tensor, kept: dict[int, Tensor]
    ) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
        """Both curves by count: every deletion, and insertion also where the decision flips."""
        last = int(self.settings.last_deletion(len(self.bag)))
        counts = np.union1d(np.arange(1, last + 1), self._reported())
        probs = self.bag.curve(order, torch.from_numpy(counts), "delete")
        left = dict(zip(counts.tolist(), probs, strict=True))
        asked = [k for k, rest in left.items() if k not in kept and self._flipped(rest)]
        more = zip(asked, self.bag.curve(order, asked), strict=True) if asked else ()
        return kept | dict(more), left

    def _reported(self) -> NDArray[np.int64]:
        return deletion_counts(self.settings, len(self.bag), dense=False, compared=self.compared)

    def _flipped(self, rest: Tensor) -> bool:
        return int(rest.argmax()) != self.bag.target

    def _settled(self, probs: Tensor) -> bool:
        """Whether every first crossing that a number rests on lies within these counts."""
        target, sure = self.bag.target, self.full[self.bag.target]
        shares = SHARES if sure < self.settings.kappa else (SHARE,)
        needed = (*self.thresholds, *(share * sure for share in shares))
        wanted = [(target, kappa) for kappa in needed]
        if self.label is not None:
            wanted.append((self.label, self.settings.kappa))
        values = probs.numpy()
        return all(followed(values, aim).sure(kappa).any() for aim, kappa in wanted)

    def _sufficient(self, kappa: float, aim: int | None = None) -> Callable[[Tensor], bool]:
        target = self.bag.target if aim is None else aim
        return lambda probs: bool(followed(probs[None].numpy(), target).sure(kappa).any())

    def _points(self, by_count: dict[int, Tensor]) -> Points:
        ks = sorted(by_count)
        nothing = torch.empty(0, len(self.full), dtype=torch.float64)
        probs = torch.stack([by_count[k] for k in ks]) if ks else nothing
        return np.array(ks, dtype=np.int64), probs.numpy()
