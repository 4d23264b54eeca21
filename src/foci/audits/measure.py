"""Measure every slide of an audit under every order of its tiles.

Curves become one table of columns, ``[O, S]`` each: O orders (a ranking with one of its seeds) and
S slides. Summary, CSV tables, report and viewer read that table and nothing else. It is made for
one shard of slides at a time (:func:`measure_shard`), where the curves are, and shards are joined
along the slides (:func:`join_shards`): a slide's numbers depend on its own curves alone.

A *view* says which class is followed on every slide: the one that the model predicts, the label, or
one that was asked for.
It is a vector of target classes; :func:`foci.metrics.curve.followed` reads the model's outputs for
them.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from foci.audits.folder import (
    AGAIN,
    Arrays,
    AuditedSlide,
    CurveTable,
    Order,
    StoredArrays,
    arrays_to_bytes,
    cut,
)
from foci.audits.records import CurveBand, plain
from foci.audits.settings import (
    KEPT,
    RANDOM,
    SELECTOR,
    SHARE,
    SHARES,
    AuditSettings,
    View,
    null_counts,
)
from foci.errors import FociError
from foci.files.spill import Spilled, spilled
from foci.metrics import inputs, slide_faithfulness, stack, symmetric_relevance_gain
from foci.metrics.cohort import adaptive_budgets, kept_alone
from foci.metrics.compare import UNKNOWN, area_differences, each_against
from foci.metrics.curve import (
    Followed,
    Stack,
    area_error,
    first_crossing,
    followed,
    followed_at,
    known_at,
    points_of,
    runners_up,
)
from foci.metrics.decisive import PAPER_BETA
from foci.metrics.deletion import PAPER_COUNTS
from foci.metrics.inputs import Floats, Integers, Marks, mean_of_rows
from foci.reveal import Curve, Direction

REFERENCES = ("the length of the feature", "the length of the feature, shortest first")
"""The last of the content-free maps, after the random directions; they have no vote."""

_TOGETHER = 1536  # curves that are measured in one go
_NUMBERS_AT_ONCE = 2**22  # of mean curves, 32 MB
MOST_SURE = 0.7
"""Share of sure slides below which the relative answers stand beside the others."""
_MOST = 0.5
NULL_TIE = 0.001
"""Difference of mean losses of probability up to which two orders are equal."""


@dataclass(frozen=True, eq=False)
class WholeSlides:
    """What is known of S slides with all their tiles; a label is -1 if it is unknown.

    Attributes:
        full: ``[S, C]`` full-bag probabilities.
        n_tiles: ``[S]`` candidate tiles.
        k_star: ``[S]`` tiles that every set which flips the prediction has at least, by proof; NaN
            where there is no such set, or no bound. It holds at every threshold.
        proven: ``[S]`` whether it is proven that a decided slide has a deciding set of so many
            tiles, or that it has none.
        exact: ``[S]`` whether that is so by the structure of the classifier, at every threshold.
        outcomes: ``[S, 2]`` time and event, ``[S, 1]`` a number, ``[S, L]`` labels, or ``[S, 0]``;
            NaN if unknown.
        label_outputs: ``[S, L]`` log-odds of every label, or ``[S, 0]``.
        asked: The class that answers are asked about; None for whatever is predicted.
    """

    ids: tuple[str, ...]
    cases: tuple[str, ...]
    labels: Integers
    full: Floats
    n_tiles: Integers
    k_star: Floats
    proven: Marks
    exact: Marks
    outcomes: Floats
    label_outputs: Floats
    asked: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def predictions(self) -> Integers:
        """``[S]`` class that the model predicts on the full bag."""
        predicted: Integers = self.full.argmax(axis=1)
        return predicted

    @property
    def sure(self) -> Floats:
        """``[S]`` confidence of the model in its prediction."""
        return followed(self.full, self.predictions).confidence

    @property
    def labelled(self) -> WholeSlides | None:
        """The slides that have a label; None if there is none."""
        rows = np.flatnonzero(self.labels >= 0)
        return self.of(rows) if len(rows) else None

    def of(self, rows: Integers) -> WholeSlides:
        """Some of the slides."""
        names = [
            one.name for one in fields(self) if isinstance(getattr(self, one.name), np.ndarray)
        ]
        own: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        ids, cases = (tuple(every[row] for row in rows) for every in (self.ids, self.cases))
        return replace(self, ids=ids, cases=cases, **own)

    @property
    def in_question(self) -> Marks:
        """``[S]`` slides that answers may rest on: all, or those of which a class is predicted."""
        if self.asked is None:
            return np.ones(len(self), dtype=np.bool_)
        marks: Marks = self.predictions == self.asked
        return marks

    @property
    def without_set(self) -> Marks:
        """``[S]`` slides of which it is proven that no set of tiles decides them."""
        marks: Marks = self.proven & np.isnan(self.k_star)
        return marks

    def cases_of(self, chosen: Marks) -> list[str]:
        """Patients of the slides marked in ``[S]``, slide by slide."""
        return [case for case, kept in zip(self.cases, chosen, strict=True) if kept]


def whole_slides(
    curves: CurveTable, slides: Sequence[AuditedSlide], classes: Sequence[str]
) -> WholeSlides:
    """The slides of a curve table, in its order."""
    stored = curves.get(*curves.orders[0])
    full, n_tiles = (
        np.array([getattr(one, name) for one in stored]) for name in ("full", "n_tiles")
    )
    return _known_slides(full, n_tiles, _slides_of(curves, slides), classes)


def _known_slides(
    full: Floats, n_tiles: Integers, slides: Sequence[AuditedSlide], classes: Sequence[str]
) -> WholeSlides:
    """What is known of slides, given ``[S, C]`` full-bag probabilities and ``[S]`` tiles."""
    index = {name: number for number, name in enumerate(classes)}
    for slide in slides:
        if slide.label is not None and slide.label not in index:
            what = f"has the label {slide.label!r}, which is no class of the model"
            raise FociError(slide.slide_id, what, f"classes: {', '.join(classes)}")
    # a set that flips then suffices at every threshold at which the slide is decided
    exact = np.array([s.k_star_theorem in ("T2", "best tile", "one tile") for s in slides])
    proven = np.array([s.k_star_kind in ("exact", "none, proven") for s in slides])
    return WholeSlides(
        ids=tuple(slide.slide_id for slide in slides),
        cases=tuple(slide.case_id for slide in slides),
        labels=np.array([-1 if s.label is None else index[s.label] for s in slides]),
        full=inputs.probabilities(full, "full"),
        n_tiles=n_tiles,
        k_star=np.array([np.nan if s.k_star is None else s.k_star for s in slides]),
        proven=proven | exact,
        exact=exact,
        outcomes=_table([slide.outcome for slide in slides]),
        label_outputs=_table([slide.label_outputs for slide in slides]),
    )


def _slides_of(curves: CurveTable, slides: Sequence[AuditedSlide]) -> list[AuditedSlide]:
    """The slides of a curve table, in its order."""
    by_id = {slide.slide_id: slide for slide in slides}
    missing = [name for name in curves.slide_ids if name not in by_id]
    if missing:
        raise FociError(missing[0], "has curves but is not among the slides", "audit again")
    return [by_id[name] for name in curves.slide_ids]


def _table(rows: Sequence[tuple[float, ...] | None]) -> Floats:
    """Equally many numbers of every slide, NaN where they are unknown."""
    width = max(len(row or ()) for row in rows)
    return np.array([row or (np.nan,) * width for row in rows]).reshape(len(rows), width)


@dataclass(frozen=True, order=True)
class Threshold:
    """Confidence that counts as recovered: one for all slides, or relative to each slide's own.

    Attributes:
        value: The confidence, or the share of the full bag's own confidence.
        relative: Whether ``value`` is such a share. It is defined on every slide, so that every
            slide counts as decided.
    """

    value: float
    relative: bool = False

    def needed(self, whole: Floats) -> Floats:
        """``[S]`` confidence that each slide has to reach, given ``[S]`` that of its full bag."""
        return self.value * whole if self.relative else np.full(len(whole), self.value)

    def decided(self, slides: WholeSlides) -> Marks:
        """Mark the slides whose full bag gives its prediction at least this confidence."""
        if self.relative:
            return slides.in_question
        return slides.in_question & followed(slides.full, slides.predictions).sure(self.value)


def absolute(settings: AuditSettings) -> tuple[Threshold, ...]:
    """The audit's own threshold and those at which its answers are repeated."""
    return tuple(Threshold(value) for value in sorted({*settings.kappas, settings.kappa}))


def few_decided(slides: WholeSlides, settings: AuditSettings) -> bool:
    """Whether the model is kappa sure of fewer than 70 % of the slides in question."""
    sure = Threshold(settings.kappa).decided(slides)[slides.in_question]
    return len(sure) > 0 and float(sure.mean()) < MOST_SURE


def relative(slides: WholeSlides, settings: AuditSettings) -> tuple[Threshold, ...]:
    """Shares of each slide's own confidence: where asked for, or under 70 % are decided."""
    wanted = settings.relative or few_decided(slides, settings)
    return tuple(Threshold(share, relative=True) for share in (SHARES if wanted else ()))


class Measured:
    """What is measured of O orders on S slides, ``[O, S]`` each; NaN where there is no number.

    Columns are cut out of one table of all orders, slides and views when they are asked for; those
    of many slides are read from a file then. Counts are held in single precision, which is exact
    for them. What is computed from them is in double precision.

    Attributes:
        orders: Ranking and seed of every row.
        thresholds: The last axis of ``msk_at`` and ``decisive_at``: the audit's own, those of the
            sensitivity, and those relative to the full bag.
        k_max: Where counts are censored.
        msk: Minimum Sufficient K.
        stable: Stable MSK.
        aukc: Area under the K-curve.
        aukc_error: Bound on its error; 0 where every count was revealed.
        specific: 1 where the target comes before its rival, else 0.
        peak: Largest confidence at any count.
        walked: Largest count up to which every one was revealed.
        revealed_all: Whether every count up to ``min(K_max, N)`` was revealed.
        deleted: Whether tiles were deleted.
        deleted_all: Whether every count was deleted, to the last of decisive K.
        drops: ``[O, S, D]`` loss of confidence at the reported deletion counts.
        area: Mean of these losses.
        null_area: Mean loss of confidence at the counts of the content-free maps.
        faithfulness: Faithfulness AUC, at the paper's counts.
        relevance_gain: Symmetric relevance gain, of log-odds or of a risk in spreads.
        both_ways: Whether a count is known in both directions, or there is one tile.
        ends: Whether the largest count that is known in both directions is N - 1.
        decisive: Decisive K: these tiles suffice, and without them the decision flips.
        decisive_paper: In the paper's form: at most 0.2 of the confidence is left.
        flips_back: Whether there is a decisive K, and a later count is not decisive.
        msk_at: ``[O, S, T]`` MSK at every threshold.
        decisive_at: ``[O, S, T]`` decisive K at every threshold.
    """

    msk: Floats
    stable: Floats
    aukc: Floats
    aukc_error: Floats
    specific: Floats
    peak: Floats
    walked: Floats
    revealed_all: Marks
    deleted: Marks
    deleted_all: Marks
    drops: Floats
    area: Floats
    null_area: Floats
    faithfulness: Floats
    relevance_gain: Floats
    both_ways: Marks
    ends: Marks
    decisive: Floats
    decisive_paper: Floats
    flips_back: Marks
    msk_at: Floats
    decisive_at: Floats

    def __init__(
        self,
        orders: tuple[Order, ...],
        thresholds: tuple[Threshold, ...],
        k_max: int,
        columns: Mapping[str, NDArray[Any] | Spilled],
        slides: slice | Integers = slice(None),
        rows: slice | Integers = slice(None),
    ) -> None:
        self.orders, self.thresholds, self.k_max = orders, thresholds, k_max
        self._columns, self._slides, self._places = columns, slides, rows

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name not in COLUMNS:
            raise AttributeError(name)
        return self._cut(self._columns[name][self._places])

    def _cut(self, column: NDArray[Any]) -> NDArray[Any]:
        """The slides of a column."""
        if isinstance(self._slides, slice):
            column = np.ascontiguousarray(column[:, self._slides])  # sums round by the layout
        else:
            column = np.take(column, self._slides, axis=1)
        return column.astype(np.float64) if column.dtype == np.float32 else column

    @property
    def mean_drops(self) -> Floats:
        """``[S, D]`` drops, means over the orders: those of all orders would fill the memory."""
        each = (self._rows(slice(row, row + 1)).drops[0] for row in range(len(self.orders)))
        return mean_of_rows(each)

    @property
    def restricted(self) -> Floats:
        """Counts, ``k_max`` where not reached."""
        return np.fmin(self.msk, float(self.k_max))

    @property
    def reached(self) -> Floats:
        """1 where reached, else 0."""
        return (~np.isnan(self.msk)).astype(np.float64)

    @property
    def averaged(self) -> dict[str, Floats]:
        """``[R, S]`` columns whose means over all slides stand in every table, by name."""
        return {
            "restricted": self.restricted,
            "reach": self.reached,
            "aukc": self.aukc,
            "faithfulness": self.with_deletions.faithfulness,
            "relevance_gain": self.with_deletions.relevance_gain,
        }

    @property
    def with_deletions(self) -> Measured:
        """The orders whose tiles were deleted; all of them if none were."""
        rows = np.flatnonzero(self.deleted.any(axis=1))
        return self._rows(rows) if 0 < len(rows) < len(self.orders) else self

    @property
    def with_decisive(self) -> Measured | None:
        """The orders whose decisive K is known on every slide; None if there is none."""
        rows = np.flatnonzero(self.deleted.any(axis=1) & self.both_ways.all(axis=1))
        if not len(rows):
            return None
        return self if len(rows) == len(self.orders) else self._rows(rows)

    def of(self, ranking: str) -> Measured:
        """The orders of one ranking."""
        rows = [row for row, (name, _) in enumerate(self.orders) if name == ranking]
        if not rows:
            raise FociError(f"ranking {ranking}", "is in no curve of the audit", AGAIN)
        return self._rows(slice(rows[0], rows[-1] + 1))

    def at(self, name: Literal["msk_at", "decisive_at"], threshold: Threshold) -> Floats:
        """``[O, S]`` counts at one threshold."""
        if threshold not in self.thresholds:
            raise FociError(f"threshold {threshold.value:g}", "was not measured", AGAIN)
        every, place = self._columns[name][self._places], self.thresholds.index(threshold)
        return self._cut(np.ascontiguousarray(every[..., place]))

    def upper_bounds(self, counts: Floats) -> int:
        """How many of ``[O, S]`` counts are upper bounds: a smaller one was not revealed."""
        return int((~(self.revealed_all | (counts <= self.walked))).sum())

    def _rows(self, rows: slice | Integers) -> Measured:
        orders = tuple(self.orders[row] for row in np.arange(len(self.orders))[rows])
        every = np.arange(len(next(iter(self._columns.values()))))[self._places][rows]
        run = len(every) and every[-1] - every[0] == len(every) - 1  # a slice is not copied
        places = slice(every[0], every[-1] + 1) if run else every
        return Measured(orders, self.thresholds, self.k_max, self._columns, self._slides, places)


COLUMNS = tuple(Measured.__annotations__)
"""Names of the columns."""

COUNTS = ("msk", "stable", "specific", "walked", "decisive", "decisive_paper", "msk_at",
          "decisive_at")  # fmt: skip
"""Columns of whole numbers."""


def measure(
    curves: CurveTable,
    slides: WholeSlides,
    rows: Integers,
    targets: Integers,
    thresholds: tuple[Threshold, ...],
    grid: Integers,
    settings: AuditSettings,
) -> tuple[Measured, Floats]:
    """Measure one block of slides under every order.

    Args:
        curves: Insertion counts up to ``settings.k_max`` are measured, others only if they decide.
        slides: The slides of the table.
        rows: ``[S]`` positions of the slides of this block; one may occur for two classes.
        targets: ``[S]`` the class that is followed on each of them.
        thresholds: At least one.
        grid: ``[G]`` counts of the mean curve.
        settings: Threshold, budget, deletion counts.

    Returns:
        The columns, and ``[O, S, G]`` confidence at the counts of the grid. Between its counts, and
        after its last one, a curve holds its value.
    """
    orders, n = tuple(curves.orders), len(rows)
    revealed = [curves.get(*order)[row] for order in orders for row in rows]
    within = [cut(curve, settings.k_max) for curve in revealed]
    having = np.array([i for i, order in enumerate(orders) if curves.deletions(*order)], dtype=int)
    deleted = [curves.deletions(*orders[i])[row] for i in having for row in rows]
    places = (having[:, None] * n + np.arange(n)).ravel()
    tried = np.flatnonzero(np.bincount(np.concatenate([[1], *(c.ks for c in deleted)]).astype(int)))
    last = settings.last_deletion(slides.n_tiles[rows])
    tried = tried[(tried >= 1) & (tried <= max(last.max(), 1))]

    # orders as if they were more slides
    flat, target = slides.of(np.tile(rows, len(orders))), np.tile(targets, len(orders))
    whole = followed(flat.full, target).confidence
    needed = np.stack([threshold.needed(whole) for threshold in thresholds])
    columns, held = _reveal(within, flat, target, needed, grid, settings)
    support = followed_at(_stacked(revealed), target, tried)
    more, left = _delete(deleted, places, flat, target, whole, tried, settings)
    columns |= more
    columns["relevance_gain"] = np.full(len(flat), np.nan)
    columns["relevance_gain"][places] = _relevance_gains(
        curves, [orders[i] for i in having], rows, targets, settings
    )

    # decisive K: counts known in both directions that suffice, and without which the decision flips
    known = ~(np.isnan(support.confidence) | np.isnan(left.confidence))
    flipping = Followed(support.confidence, support.kept & left.lost())
    both = flipping.sure(settings.kappa)
    count = first_crossing(both, tried)
    columns["both_ways"] = (flat.n_tiles == 1) | known.any(axis=1)
    columns["ends"] = np.max(known * tried, axis=1, initial=0) >= flat.n_tiles - 1
    columns["decisive"] = count
    paper = support.sure(settings.kappa) & left.lost(PAPER_BETA)
    columns["decisive_paper"] = first_crossing(paper, tried)
    columns["flips_back"] = np.any(known & ~both & (tried > count[:, None]), axis=1)
    each = [first_crossing(flipping.sure(one[:, None]), tried) for one in needed]
    columns["decisive_at"] = np.stack(each, axis=-1)
    table = {
        name: column.reshape(len(orders), n, *column.shape[1:]) for name, column in columns.items()
    }
    return Measured(orders, thresholds, settings.k_max, table), held.reshape(len(orders), n, -1)


def _reveal(
    curves: Sequence[Curve],
    slides: WholeSlides,
    target: Integers,
    needed: Floats,
    grid: Integers,
    settings: AuditSettings,
) -> tuple[dict[str, NDArray[Any]], Floats]:
    """Columns of insertion curves, and confidence on the ``grid``."""
    n, rivals = len(curves), runners_up(slides.full, target)
    names = ("msk", "stable", "aukc", "aukc_error", "specific", "peak", "walked")
    columns = {name: np.full(n, np.nan) for name in names}
    columns["msk_at"] = np.full((n, len(needed)), np.nan)
    held = np.empty((n, len(grid)))
    for part in _stacked(curves):
        at, ks, seen = part.rows, part.ks, followed(part.probs, target[part.rows])
        points = points_of(seen, followed(part.probs, rivals[at]), ks, settings.kappa)
        for name, values in zip(("msk", "stable", "aukc", "specific"), points, strict=True):
            columns[name][at] = values
        columns["msk_at"][at] = first_crossing(seen.sure(needed[:, at, None]), ks).T
        columns["aukc_error"][at] = area_error(seen.confidence, ks)
        columns["peak"][at] = seen.confidence.max(axis=-1)
        columns["walked"][at] = _without_gap(ks)
        held[at] = seen.confidence[:, np.maximum(np.searchsorted(ks, grid, side="right") - 1, 0)]
    columns["revealed_all"] = columns["walked"] >= np.minimum(settings.k_max, slides.n_tiles)
    return columns, held


def _stacked(curves: Sequence[Curve], lowest: int = 1) -> tuple[Stack, ...]:
    """Curves that share their counts, together; none of none."""
    probs, ks = [curve.probs for curve in curves], [curve.ks for curve in curves]
    return stack(probs, ks, lowest=lowest) if curves else ()


def _delete(
    curves: Sequence[Curve],
    places: Integers,
    slides: WholeSlides,
    target: Integers,
    whole: Floats,
    tried: Integers,
    settings: AuditSettings,
) -> tuple[dict[str, NDArray[Any]], Followed]:
    """Columns of deletion curves, and what they say at the counts ``tried``.

    Not every order has deletion curves: ``places`` says where they belong among the ``slides``.
    """
    n = len(slides)
    counts = np.array(sorted({*PAPER_COUNTS, *settings.deletion}))
    compared = null_counts(slides.n_tiles)
    fell = np.full(compared.shape, np.nan)
    lost, left = np.full((n, len(counts)), np.nan), np.full((n, len(tried)), np.nan)
    kept, deleted, walked = np.zeros(left.shape, bool), np.zeros(n, bool), np.zeros(n)
    for part in _stacked(curves, lowest=0):
        at, ks = places[part.rows], part.ks
        seen = followed(part.probs, target[at])
        lost[at] = whole[at, None] - known_at(counts, ks, seen.confidence)
        fell[at] = whole[at, None] - known_at(compared[at], ks, seen.confidence)
        left[at] = known_at(tried, ks, seen.confidence)
        kept[at] = known_at(tried, ks, seen.kept) == 1
        deleted[at], walked[at] = True, _without_gap(ks[ks > 0])
    if settings.kappa in settings.kappas:  # at any other, the first count may have been left out
        walked[places] = np.maximum(walked[places], [curve.searched for curve in curves])
    reported, paper = (lost[:, np.isin(counts, of)] for of in (settings.deletion, PAPER_COUNTS))
    columns = {
        "deleted": deleted,
        "deleted_all": walked >= settings.last_deletion(slides.n_tiles),
        "drops": reported,
        "area": slide_faithfulness(reported, slides.n_tiles, settings.deletion),
        "null_area": _null_area(fell, compared),
        "faithfulness": slide_faithfulness(paper, slides.n_tiles),
    }
    return columns, Followed(left, kept)


def _relevance_gains(
    curves: CurveTable,
    orders: Sequence[Order],
    rows: Integers,
    targets: Integers,
    settings: AuditSettings,
) -> Floats:
    """Symmetric relevance gain of every order on every slide, ``[O * S]``."""

    def both(order: Order, row: int, target: int, way: Direction) -> tuple[Integers, Floats]:
        own = (curves.get(*order, way), curves.tail(*order, way))
        parts = [group[row] for group in own if group]
        probs = np.concatenate([part.probs for part in parts])
        return np.concatenate([part.ks for part in parts]), log_odds(probs, target)

    found = [
        symmetric_relevance_gain(
            *both(order, row, target, "insert"),
            *both(order, row, target, "delete"),
            float(log_odds(curves.get(*order)[row].full, target)),
            curves.get(*order)[row].n_tiles,
        )
        for order in orders
        for row, target in zip(rows, targets, strict=True)
    ]
    gains: Floats = np.array(found, dtype=np.float64) * settings.per_log_odds
    return gains


def log_odds(probs: Floats, target: int) -> Floats:
    r"""Log-odds :math:`\log p_t - \log \sum_{c \ne t} p_c` of one class, ``[..., C]`` to ``[...]``.

    >>> log_odds(np.array([[0.25, 0.75], [0.5, 0.5]]), 1).round(4).tolist()
    [1.0986, 0.0]
    """
    others = probs.sum(axis=-1, where=np.arange(probs.shape[-1]) != target)
    least = np.finfo(np.float64).tiny
    odds: Floats = np.log(np.maximum(probs[..., target], least)) - np.log(np.maximum(others, least))
    return odds


def _without_gap(ks: Integers) -> int:
    """Largest count k such that 1, 2, ..., k are all among the counts."""
    return int((ks == np.arange(1, len(ks) + 1)).sum())


def null_areas(curves: CurveTable, slides: WholeSlides) -> Floats | None:
    """``[M + references, S]`` mean loss of confidence under content-free maps; None without any.

    NaN where a slide was not sampled, or is too small.
    """
    after = {row: curve for row, curve in enumerate(curves.null_maps) if len(curve.ks)}
    if not after:
        return None
    predicted, whole, counts = slides.predictions, slides.sure, null_counts(slides.n_tiles)
    n_maps = max(len(curve.probs) // len(curve.ks) for curve in after.values())
    fell = np.full((n_maps, *counts.shape), np.nan)
    for row, curve in after.items():
        own = followed(curve.probs, int(predicted[row])).confidence.reshape(n_maps, -1)
        fell[:, row] = whole[row] - known_at(counts[row], curve.ks, own)
    return _null_area(fell, counts)


def _null_area(fell: Floats, counts: Integers) -> Floats:
    r"""Area :math:`K_3^{-1} \int_{K_1}^{K_3} \Delta p\,dK` of ``[..., S, 3]`` at ``[S, 3]``."""
    last = np.where(counts[:, -1] > 0, counts[:, -1], 1)
    areas: Floats = np.trapezoid(fell, counts, axis=-1) / last
    return areas


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredSlides:
    """The curves within the budget, and what was measured on them.

    Attributes:
        curves: Cut at the largest count.
        targets: By view, ``[S]`` the class that is followed on every slide; -1 where there is none.
        first_tiles_tied: ``[O, S]`` share of the first tiles that is tied.
        kept: ``[O, S, 2, C]`` probabilities with only the first 32 tiles, or the adaptive number of
            them; NaN where that count was not revealed.
        null_map_wins: ``[M + references, S]`` random orders that a content-free map beats, minus
            those that beat it, by :func:`null_areas`; None where either was not run.
    """

    curves: CurveTable
    slides: WholeSlides
    targets: dict[View, Integers]
    tables: dict[View, Measured]
    first_tiles_tied: Floats
    kept: Floats | Spilled
    mean_curves: Mapping[View, Mapping[str, CurveBand]]
    null_map_wins: NDArray[np.int16] | None = None

    def null_wins(self, ranking: str) -> Floats:
        """``[S]`` a ranking against random orders, the mean over them."""
        own, random = (self.of(name).with_deletions.null_area for name in (ranking, RANDOM))
        return area_differences(own, random, tie=NULL_TIE)

    @cached_property
    def tied(self) -> dict[str, float]:
        """Share of the slides, by ranking, on which most of its first tiles are tied."""
        shares = (self.first_tiles_tied > _MOST).mean(axis=1).tolist()
        return {name: share for (name, _), share in zip(self.curves.orders, shares, strict=True)}

    def rows(self, view: View) -> Integers:
        """Positions of the slides of a view."""
        return np.flatnonzero(self.targets[view] >= 0)

    def slides_of(self, view: View) -> WholeSlides:
        """The slides of a view."""
        return self.slides.of(self.rows(view))

    def of(self, ranking: str, view: View = "prediction") -> Measured:
        """The columns of one ranking."""
        return self.tables[view].of(ranking)

    @property
    def headline(self) -> str:
        """The ranking by which slides are sorted: the selector where there is one, or the first."""
        names = self.curves.rankings
        return SELECTOR if SELECTOR in names else names[0]

    @property
    def hardest_first(self) -> Integers:
        """Slides by tiles needed under :attr:`headline`, then by the area under the curve."""
        own = self.of(self.headline)
        needed, area = own.restricted.mean(axis=0), own.aukc.mean(axis=0)
        return np.lexsort((area, -needed)).astype(np.int64)


def measure_slides(
    curves: CurveTable,
    slides: Sequence[AuditedSlide],
    classes: Sequence[str],
    settings: AuditSettings,
) -> MeasuredSlides:
    """MSK, AUKC, Faithfulness and the rest of every slide, under every ranking, in every view.

    Curves are read and measured shard by shard.
    """
    ordered = _slides_of(curves, slides)
    with tempfile.TemporaryDirectory(prefix="foci-measured-") as place:
        shards: list[Shard] = []
        means: list[Shard] = []
        start = 0
        for number, part in enumerate(curves.by_part()):
            own = ordered[start : start + len(part.slide_ids)]
            start += len(own)
            shard, mean = measure_shard(part, own, classes, settings)
            if len(own) < len(ordered):  # all of them may not fit into memory
                path = Path(place, f"{number}")
                path.write_bytes(mean.to_bytes())
                mean = Shard.read(path)
            shards.append(shard)
            means.append(mean)
        measured = join_shards(shards, ordered, classes, settings, curves)
        return replace(measured, mean_curves=mean_curves(means))


@dataclass(frozen=True)
class Shard:
    """Arrays on some consecutive slides, and facts on them that are the same in every shard."""

    arrays: Arrays
    facts: Mapping[str, Any]

    def to_bytes(self) -> bytes:
        """As a file."""
        return arrays_to_bytes(self.arrays, self.facts)

    @classmethod
    def read(cls, path: Path) -> Shard:
        """A file, of which arrays are read when they are asked for."""
        arrays = StoredArrays(path)
        return cls(arrays, arrays.facts)


def measure_shard(
    curves: CurveTable,
    slides: Sequence[AuditedSlide],
    classes: Sequence[str],
    settings: AuditSettings,
) -> tuple[Shard, Shard]:
    """Measure the slides of a shard; what only the mean curves need stands apart.

    A slide is measured once for every class that a view follows on it: rows of slides on which a
    view follows another class than the prediction come last.
    """
    whole = whole_slides(curves, slides, classes)
    revealed, orders = curves.up_to(settings.k_max), curves.orders
    labels, predictions, rows = whole.labels, whole.predictions, np.arange(len(whole))
    targets, asked = predictions, settings.followed(classes)
    followed_by: dict[View, Integers] = {"label": labels}
    if asked is not None:
        followed_by["class"] = np.full(len(whole), asked)
    row_of: dict[str, NDArray[Any]] = {}
    for view, wanted in followed_by.items():
        differs = np.flatnonzero((wanted >= 0) & (wanted != predictions))
        place = np.arange(len(whole))
        place[differs] = len(rows) + np.arange(len(differs))
        row_of[f"rows:{view}"] = place[wanted >= 0]
        rows, targets = np.append(rows, differs), np.append(targets, wanted[differs])

    arrays: dict[str, NDArray[Any]] = {"full": whole.full, "n_tiles": whole.n_tiles, **row_of}
    means: dict[str, NDArray[Any]] = {"labels": labels, **row_of}
    grid = np.empty(0, dtype=np.int64)
    for name in revealed.rankings:
        for view in ("prediction", *followed_by):
            chosen = np.flatnonzero(labels >= 0) if view == "label" else np.arange(len(whole))
            followed_on = [c[int(row)] for c in revealed.every_seed(name) for row in chosen]
            if followed_on:
                shared, reaching = counts_shared(followed_on)
                means[f"shared:{view}:{name}"], means[f"reaching:{view}:{name}"] = shared, reaching
                grid = np.union1d(grid, np.flatnonzero((shared == reaching) & (shared > 0)))
    shares = (Threshold(share, relative=True) for share in (SHARE, *SHARES))
    thresholds = tuple(dict.fromkeys((*absolute(settings), *shares)))

    blocks = []
    size = max(1, _TOGETHER // len(orders))
    for block in (slice(start, start + size) for start in range(0, len(rows), size)):
        table, held = measure(
            curves, whole, rows[block], targets[block], thresholds, grid, settings
        )
        columns = {name: np.moveaxis(getattr(table, name), 0, 1) for name in COLUMNS}
        blocks.append({**columns, "held": np.moveaxis(held, 0, 1)})
    joined = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    held = joined.pop("held")
    for name in revealed.rankings:
        at = [row for row, (ranking, _) in enumerate(orders) if ranking == name]
        own_held = held[:, at[0] : at[-1] + 1]
        means[f"held:{name}"] = own_held if name == RANDOM else own_held.mean(axis=1, keepdims=True)
    means["grid"] = grid

    arrays |= joined
    arrays["first_tiles_tied"] = np.array([[c.tied for c in curves.get(*o)] for o in orders]).T
    budgets = np.full(len(whole), KEPT), adaptive_budgets(whole.n_tiles)
    kept = []
    for order in orders:
        stacks = _stacked(curves.get(*order))
        each = [kept_alone(stacks, whole.n_tiles, whole.full, budget) for budget in budgets]
        kept.append(np.stack(each, axis=1))
    arrays["kept"] = np.stack(kept, axis=1)
    areas = null_areas(curves, whole)
    if areas is not None:
        arrays["null_areas"] = areas.T
    facts = {
        "orders": orders,
        "thresholds": [[one.value, one.relative] for one in thresholds],
        "k_max": settings.k_max,
        "views": ["prediction", *followed_by],
    }
    return Shard(arrays, facts), Shard(means, facts)


def join_shards(
    shards: Sequence[Shard],
    slides: Sequence[AuditedSlide],
    classes: Sequence[str],
    settings: AuditSettings,
    curves: CurveTable,
) -> MeasuredSlides:
    """What was measured of all slides; mean curves are left out, see :func:`mean_curves`."""
    full, n_tiles = (
        np.concatenate([shard.arrays[name] for shard in shards]) for name in ("full", "n_tiles")
    )
    whole = _known_slides(full, n_tiles, slides, classes)
    whole = replace(whole, asked=settings.asked(classes))
    facts = shards[0].facts
    known = [Threshold(value, relative=share) for value, share in facts["thresholds"]]
    wanted = {*absolute(settings), Threshold(SHARE, relative=True), *relative(whole, settings)}
    at = [place for place, one in enumerate(known) if one in wanted]
    views: dict[View, Integers] = {"prediction": whole.predictions}
    if (whole.labels >= 0).any():
        views["label"] = whole.labels
    if "class" in facts["views"]:
        views["class"] = np.full(len(whole), settings.asked(classes))
    sizes = [len(shard.arrays["full"]) for shard in shards]
    # rows of slides on which a view follows another class come after all slides
    more = [len(shard.arrays["msk"]) - n for shard, n in zip(shards, sizes, strict=True)]
    n_rows, start, beyond = len(whole) + sum(more), 0, len(whole)
    places: dict[View, list[Integers]] = {view: [] for view in views}
    for shard, n, n_more in zip(shards, sizes, more, strict=True):
        for view in views:
            own = view_rows(view, whole.labels[start : start + n], shard.arrays)
            places[view].append(np.where(own < n, start + own, beyond + own - n))
        start, beyond = start + n, beyond + n_more
    columns = {name: spilled(_joined(shards, name, sizes, n_rows, at)) for name in COLUMNS}
    orders = tuple((ranking, seed) for ranking, seed in facts["orders"])
    thresholds = tuple(known[place] for place in at)
    tables: dict[View, Measured] = {}
    for view, every in places.items():
        rows = slice(len(whole)) if view == "prediction" else np.concatenate(every)
        tables[view] = Measured(orders, thresholds, facts["k_max"], columns, rows)
    tied, kept = (_joined(shards, n, sizes, len(whole)) for n in ("first_tiles_tied", "kept"))
    measured = MeasuredSlides(
        curves.up_to(settings.k_max), whole, views, tables, tied, spilled(kept), {}
    )
    return replace(measured, null_map_wins=_joined_wins(shards, measured))


def _joined(
    shards: Sequence[Shard], name: str, sizes: Sequence[int], n_rows: int, at: Sequence[int] = ()
) -> NDArray[Any]:
    """``[rows, O, ...]`` of every shard as one ``[O, rows, ...]``, those beyond its slides last.

    Columns over thresholds are kept ``at`` some of them.
    """
    found: NDArray[Any] = np.empty(0)
    start, beyond = 0, sum(sizes)
    for shard, n in zip(shards, sizes, strict=True):
        part = np.moveaxis(shard.arrays[name], 0, 1)
        if name in ("msk_at", "decisive_at"):
            part = part[..., at]
        if not start:
            kind = np.float32 if name in COUNTS else part.dtype
            found = np.empty((len(part), n_rows, *part.shape[2:]), kind)
        n_more = part.shape[1] - n
        found[:, start : start + n], found[:, beyond : beyond + n_more] = part[:, :n], part[:, n:]
        start, beyond = start + n, beyond + n_more
    return found


def _joined_wins(shards: Sequence[Shard], measured: MeasuredSlides) -> NDArray[np.int16] | None:
    """See :attr:`MeasuredSlides.null_map_wins`."""
    found = [s.arrays.get("null_areas") for s in shards]
    n_maps = max((part.shape[1] for part in found if part is not None), default=0)
    if not n_maps or RANDOM not in measured.curves.rankings:
        return None
    random = measured.of(RANDOM).with_deletions.null_area
    wins, start = np.full((n_maps, len(measured.slides)), UNKNOWN, np.int16), 0
    for shard, part in zip(shards, found, strict=True):
        own = slice(start, start + len(shard.arrays["full"]))
        if part is not None:
            wins[:, own] = each_against(part.T, random[:, own], NULL_TIE)
        start = own.stop
    return wins


def view_rows(view: View, labels: Integers, arrays: Arrays) -> Integers:
    """Rows of a shard that belong to a view, one per slide of it."""
    return np.arange(len(labels)) if view == "prediction" else arrays[f"rows:{view}"]


def mean_curves(shards: Sequence[Shard]) -> dict[View, dict[str, CurveBand]]:
    """Mean confidence at every count that all slides have, by view and ranking.

    A slide that is too small for a count keeps its last value. Only some counts of the curves of
    one ranking are in memory at a time, and of random orders only their sums.
    """
    names = list(dict.fromkeys(ranking for ranking, _ in shards[0].facts["orders"]))
    labelled = any((shard.arrays["labels"] >= 0).any() for shard in shards)
    known: list[View] = shards[0].facts["views"]
    views = [view for view in known if labelled or view != "label"]
    found: dict[View, dict[str, CurveBand]] = {view: {} for view in views}
    for view in views:
        chosen = [view_rows(view, shard.arrays["labels"], shard.arrays) for shard in shards]
        used = [(s, rows) for s, rows in zip(shards, chosen, strict=True) if len(rows)]
        for name in names:
            shared, reaching = (
                _added([shard.arrays[f"{what}:{view}:{name}"] for shard, _ in used])
                for what in ("shared", "reaching")
            )
            ks = np.flatnonzero((shared == reaching) & (shared > 0))
            parts = [ks]
            if name != RANDOM:  # all slides at some of the counts are in memory
                n_slides = sum(len(rows) for _, rows in used)
                n_parts = min(-(-n_slides * len(ks) // _NUMBERS_AT_ONCE), len(ks) // 2)
                parts = np.array_split(ks, max(n_parts, 1))  # sums of one count round otherwise
            bands = [
                mean_curve(
                    part, (_held_at(part, shard.arrays, name, rows) for shard, rows in used),
                    over_orders=name == RANDOM,
                )
                for part in parts
            ]  # fmt: skip
            found[view][name] = CurveBand(
                **{
                    own: [value for band in bands for value in getattr(band, own)]
                    for own in ("ks", "mean", "low", "high")
                }
            )
    return found


def _held_at(ks: Integers, arrays: Arrays, name: str, rows: Integers) -> Floats:
    """``[R, S, G]`` confidence at counts that all slides of the audit have."""
    grid = arrays["grid"]  # its last count is the last of the longest curve
    at = np.minimum(np.searchsorted(grid, ks), len(grid) - 1)
    # as sums round by the layout in memory, it is always the same
    return np.ascontiguousarray(np.moveaxis(arrays[f"held:{name}"][rows][..., at], 1, 0))


def _added(counts: Sequence[Integers]) -> Integers:
    """Sum of counts of different lengths."""
    total = np.zeros(max(map(len, counts)), dtype=np.int64)
    for own in counts:
        total[: len(own)] += own
    return total


def counts_shared(curves: Sequence[Curve]) -> tuple[Integers, Integers]:
    """By count, how many curves have it, and how many have it or a larger one.

    Counts that all curves have, as far as their own counts go, are those where both are the same.
    """
    alike = Counter(curve.ks.astype(np.int64).tobytes() for curve in curves)
    measured = [np.frombuffer(ks, dtype=np.int64) for ks in alike]
    times = np.array(list(alike.values()))
    each = np.repeat(times, [len(ks) for ks in measured])
    shared = np.bincount(np.concatenate(measured), weights=each)
    ending = np.bincount([ks[-1] for ks in measured], weights=times)
    reaching = np.cumsum(ending[::-1])[::-1]
    return shared.astype(np.int64), reaching.astype(np.int64)


def mean_curve(ks: Integers, blocks: Iterable[Floats], *, over_orders: bool) -> CurveBand:
    """Mean over seeds and slides of blocks of slides, ``[R, S, G]`` confidences, with a band.

    The band holds the quartiles over slides, or the smallest and the largest mean over orders.
    """
    if over_orders:
        sums, n = np.zeros((1, len(ks))), 0
        for block in blocks:
            before = np.broadcast_to(sums, (len(block), len(ks)))[:, None]
            sums, n = np.concatenate([before, block], axis=1).sum(axis=1), n + block.shape[1]
        means = sums / n
        low, high = means.min(axis=0), means.max(axis=0)
    else:
        means = np.concatenate([block.mean(axis=0) for block in blocks])
        low, high = np.quantile(means, [0.25, 0.75], axis=0)
    return CurveBand(
        ks=ks.tolist(), mean=plain(means.mean(axis=0)), low=plain(low), high=plain(high)
    )
