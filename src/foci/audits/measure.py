"""Slides of the prediction view and of the label view, with the target class of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from foci.audits.settings import SHARE, SHARES, AnalysisSettings, View
from foci.audits.stored import AuditedSlide, CurveTable, Order
from foci.errors import FociError
from foci.metrics import (
    decisive_points,
    drops_on_grid,
    operating_points,
    restricted,
    slide_faithfulness,
    stack,
)
from foci.metrics.curve import (
    OperatingPoints,
    Stack,
    first_counts,
    followed_class,
    on_grid,
    reached,
)
from foci.metrics.decisive import PAPER_BETA, decisive_counts
from foci.metrics.deletion import PAPER_COUNTS
from foci.metrics.inputs import Chosen, Floats, Integers, Marks, defined_mean
from foci.metrics.stats import Sampling, sampling_of
from foci.reveal import Curve


@dataclass(frozen=True, eq=False)
class ViewSlides:
    """The S slides of one view, with target classes, labels and full-bag probabilities.

    Attributes:
        rows: ``[S]`` positions of the slides in the curve table.
        targets: ``[S]`` target class of the view.
        labels: ``[S]`` true class; -1 if unknown.
        full: ``[S, C]`` full-bag probabilities.
        n_tiles: ``[S]`` number of candidate tiles.
        cases: Patient of each slide.
    """

    rows: Integers
    targets: Integers
    labels: Integers
    full: Floats
    n_tiles: Integers
    cases: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def predictions(self) -> Integers:
        """``[S]`` class that the model predicts on the full bag."""
        predicted: Integers = self.full.argmax(axis=1)
        return predicted

    @property
    def sure(self) -> Floats:
        """``[S]`` probability that the full bag gives to the class followed."""
        sure: Floats = np.take_along_axis(self.full, self.targets[:, None], axis=1)[:, 0]
        return sure

    def cases_of(self, chosen: Marks) -> list[str]:
        """Patients of the slides marked in ``[S]``, slide by slide."""
        return [case for case, kept in zip(self.cases, chosen, strict=True) if kept]

    def repeated(self, times: int) -> ViewSlides:
        """The same slides several times over, as if each copy were a slide of its own."""
        return ViewSlides(
            rows=np.tile(self.rows, times),
            targets=np.tile(self.targets, times),
            labels=np.tile(self.labels, times),
            full=np.tile(self.full, (times, 1)),
            n_tiles=np.tile(self.n_tiles, times),
            cases=self.cases * times,
        )

    def followed_by(self, other: ViewSlides, chosen: Integers) -> ViewSlides:
        """These slides, then those of another view at the positions ``chosen``."""
        return ViewSlides(
            rows=np.concatenate([self.rows, other.rows[chosen]]),
            targets=np.concatenate([self.targets, other.targets[chosen]]),
            labels=np.concatenate([self.labels, other.labels[chosen]]),
            full=np.concatenate([self.full, other.full[chosen]]),
            n_tiles=np.concatenate([self.n_tiles, other.n_tiles[chosen]]),
            cases=(*self.cases, *(other.cases[row] for row in chosen)),
        )

    def of(self, curves: Sequence[Curve]) -> list[Curve]:
        """Select the curves of these slides from those of all slides."""
        return [curves[row] for row in self.rows]


def followed_once(views: Sequence[ViewSlides]) -> tuple[ViewSlides, list[Chosen]]:
    """Slides of several views of the same slides, none twice with the same class to follow.

    Returns:
        The slides of the first view, then those of the others that follow another class; and where
        the slides of every view are among them.
    """
    first, *others = views
    together, places = first, list[Chosen]([slice(0, len(first))])
    for other in others:
        differs = np.flatnonzero(other.targets != first.targets)
        place = np.arange(len(first))
        place[differs] = len(together) + np.arange(len(differs))
        together = together.followed_by(other, differs)
        places.append(place)
    return together, places


def slides_by_view(
    curves: CurveTable, slides: Sequence[AuditedSlide], classes: Sequence[str]
) -> dict[View, ViewSlides]:
    """Views of an audit: all slides by prediction, labelled slides by label.

    There is no label view if no slide has a label.
    """
    by_id = {slide.slide_id: slide for slide in slides}
    missing = [name for name in curves.slide_ids if name not in by_id]
    if missing:
        raise FociError(missing[0], "has curves but is not among the slides", "audit again")
    ordered = [by_id[name] for name in curves.slide_ids]
    first = curves.rankings[0]
    stored = curves.get(first, curves.seeds(first)[0])
    full = np.stack([curve.full for curve in stored])
    everyone = ViewSlides(
        rows=np.arange(len(stored)),
        targets=full.argmax(axis=1),
        labels=np.array([_class(slide, classes) for slide in ordered]),
        full=full,
        n_tiles=np.array([curve.n_tiles for curve in stored]),
        cases=tuple(slide.case_id for slide in ordered),
    )
    labelled = np.flatnonzero(everyone.labels >= 0)
    views: dict[View, ViewSlides] = {"prediction": everyone}
    if len(labelled):
        views["label"] = ViewSlides(
            rows=labelled,
            targets=everyone.labels[labelled],
            labels=everyone.labels[labelled],
            full=full[labelled],
            n_tiles=everyone.n_tiles[labelled],
            cases=tuple(everyone.cases[row] for row in labelled),
        )
    return views


def _class(slide: AuditedSlide, classes: Sequence[str]) -> int:
    if slide.label is None:
        return -1
    if slide.label not in classes:
        what = f"has the label {slide.label!r}, which is no class of the model"
        raise FociError(slide.slide_id, what, f"classes: {', '.join(classes)}")
    return list(classes).index(slide.label)


# Confidence that counts as recovered: one for all slides, or a share of each slide's own.


_FEW = 1 / 3


@dataclass(frozen=True, order=True)
class Threshold:
    """A confidence, absolute or relative to the full bag.

    Attributes:
        value: The confidence, or the share of the full bag's own confidence.
        relative: Whether ``value`` is such a share. It is defined on every slide, so that every
            slide counts as decided.
    """

    value: float
    relative: bool = False

    def needed(self, group: ViewSlides) -> Floats:
        """``[S]`` probability that each slide has to reach."""
        return self.value * group.sure if self.relative else np.full(len(group), self.value)

    def decided(self, group: ViewSlides) -> Marks:
        """Mark the slides whose full bag gives its prediction at least this probability."""
        if self.relative:
            return np.ones(len(group), dtype=np.bool_)
        marks: Marks = group.full.max(axis=1) >= self.value
        return marks


def absolute(settings: AnalysisSettings) -> tuple[Threshold, ...]:
    """The audit's own threshold and those at which its answers are repeated."""
    return tuple(Threshold(value) for value in sorted({*settings.kappas, settings.kappa}))


def few_decided(group: ViewSlides, settings: AnalysisSettings) -> bool:
    """Whether the model is kappa sure of fewer than a third of the slides."""
    return len(group) > 0 and float(Threshold(settings.kappa).decided(group).mean()) < _FEW


def relative(group: ViewSlides, settings: AnalysisSettings) -> tuple[Threshold, ...]:
    """Shares of each slide's own confidence: where asked for, and where few slides are decided."""
    wanted = settings.relative or few_decided(group, settings)
    return tuple(Threshold(share, relative=True) for share in (SHARES if wanted else ()))


# Mean reveal curve over a cohort, with a band, for one ranking.


@dataclass(frozen=True, eq=False)
class MeanCurve:
    """Mean probability of the target at every count, with a band.

    Attributes:
        ks: ``[G]`` counts.
        mean: Mean over the slides.
        low: Lower end of the band.
        high: Upper end of the band.
    """

    ks: Integers
    mean: Floats
    low: Floats
    high: Floats


def common_counts(curves: Sequence[Curve]) -> Integers:
    """Counts that every slide has, as far as its own counts go.

    A smaller slide keeps its last value beyond its own counts.
    """
    alike = Counter(curve.ks.astype(np.int64).tobytes() for curve in curves)
    measured = [np.frombuffer(ks, dtype=np.int64) for ks in alike]
    times = np.array(list(alike.values()))
    each = np.repeat(times, [len(ks) for ks in measured])
    shared = np.bincount(np.concatenate(measured), weights=each)
    ending = np.bincount([ks[-1] for ks in measured], weights=times)
    reaching = np.cumsum(ending[::-1])[::-1]
    return np.flatnonzero((shared == reaching) & (shared > 0))


def spread_over_slides(ks: Integers, tables: Sequence[Floats]) -> MeanCurve:
    """Mean and quartiles over slides of ``[S, G]`` tables, averaged over seeds first."""
    each = np.mean(tables, axis=0)
    low, high = np.quantile(each, [0.25, 0.75], axis=0)
    return MeanCurve(ks, each.mean(axis=0), low, high)


def spread_over_orders(ks: Integers, tables: Sequence[Floats]) -> MeanCurve:
    """Mean, minimum and maximum over random orders of the cohort mean of ``[S, G]`` tables."""
    means = np.stack([table.mean(axis=0) for table in tables])
    return MeanCurve(ks, means.mean(axis=0), means.min(axis=0), means.max(axis=0))


# MSK and decisive K of every slide at a threshold: do these tiles suffice, and are they needed?


@dataclass(frozen=True, eq=False)
class Decisive:
    """Decisive K of R seeds on S slides, ``[R, S]`` each (``[S]`` for one seed).

    Attributes:
        count: Decisive K, flip form; NaN where there is none.
        stable: The count from which both conditions hold at every later count.
        outcome: ``"count"``, ``"beyond"``, ``"none"`` or ``"not assessable"``.
        flips_back: Whether a decisive count exists and a later one is not decisive.
        paper: The paper's form: at most 0.2 of the target's probability is left.
        exact: Whether every count up to ``min(K_max, N - 1)`` was tried.
    """

    count: Floats
    stable: Floats
    outcome: NDArray[np.str_]
    flips_back: Marks
    paper: Floats
    exact: Marks

    def of(self, slides: Chosen) -> Decisive:
        """Decisive K of some slides."""
        return Decisive(
            count=self.count[..., slides],
            stable=self.stable[..., slides],
            outcome=self.outcome[..., slides],
            flips_back=self.flips_back[..., slides],
            paper=self.paper[..., slides],
            exact=self.exact[..., slides],
        )

    @classmethod
    def over_seeds(cls, seeds: Sequence[Decisive]) -> Decisive:
        """Stack the seeds of a ranking."""
        return cls(
            count=np.stack([one.count for one in seeds]),
            stable=np.stack([one.stable for one in seeds]),
            outcome=np.stack([one.outcome for one in seeds]),
            flips_back=np.stack([one.flips_back for one in seeds]),
            paper=np.stack([one.paper for one in seeds]),
            exact=np.stack([one.exact for one in seeds]),
        )


@dataclass(frozen=True, eq=False)
class CountsAt:
    """MSK and decisive K at one threshold, ``[R, S]`` each (``[S]`` for one seed).

    Decisive K has the seeds whose tiles were deleted.

    Attributes:
        msk: NaN where not reached.
        decisive: NaN where there is none; None where deletion was not measured.
    """

    msk: Floats
    decisive: Floats | None

    def of(self, slides: Chosen) -> CountsAt:
        """The counts of some slides."""
        decisive = None if self.decisive is None else self.decisive[..., slides]
        return CountsAt(self.msk[..., slides], decisive)

    @classmethod
    def over_seeds(cls, seeds: Sequence[CountsAt]) -> CountsAt:
        """Stack the seeds of a ranking."""
        counts = [one.decisive for one in seeds if one.decisive is not None]
        known = np.stack(counts) if counts else None
        return cls(np.stack([one.msk for one in seeds]), known)


def decisive_of(
    insert: Sequence[Stack], delete: Sequence[Stack], group: ViewSlides, kappa: float, k_max: int
) -> Decisive | None:
    """Decisive K of one seed in both forms; None where no counts are known in both directions."""
    if not delete:
        return None
    try:
        flip = decisive_points(insert, delete, group.targets, group.n_tiles, kappa, k_max)
    except FociError:  # an audit may reveal and delete at counts of its own that never meet
        return None
    paper = decisive_points(
        insert, delete, group.targets, group.n_tiles, kappa, k_max, beta=PAPER_BETA
    )
    return Decisive(
        count=flip.count,
        stable=flip.stable,
        outcome=flip.outcome,
        flips_back=flip.flips_back,
        paper=paper.count,
        exact=_dense(delete, group, k_max),
    )


def counts_at(
    insert: Sequence[Stack],
    delete: Sequence[Stack],
    group: ViewSlides,
    thresholds: Sequence[Threshold],
    k_max: int,
) -> dict[Threshold, CountsAt]:
    """MSK and decisive K of one seed at every threshold.

    Args:
        insert: Insertion curves of the slides.
        delete: Their deletion curves; empty where decisive K is not to be had.
        group: The slides and the classes followed.
        thresholds: At least one.
        k_max: Largest count.
    """
    needed = np.stack([threshold.needed(group) for threshold in thresholds])
    msk = first_counts(insert, group.targets, needed)
    decisive: Sequence[Floats | None] = [None] * len(thresholds)
    if delete:
        counts = decisive_counts(insert, delete, group.targets, group.n_tiles, needed, k_max)
        decisive = list(counts)
    return {
        threshold: CountsAt(*counts)
        for threshold, counts in zip(thresholds, zip(msk, decisive, strict=True), strict=True)
    }


def _dense(delete: Sequence[Stack], group: ViewSlides, k_max: int) -> Marks:
    """``[S]`` whether tiles were deleted at every count up to ``min(K_max, N - 1)``."""
    dense = np.ones(len(group), dtype=bool)
    for part in delete:
        tried = ((part.ks >= 1) & (part.ks <= k_max)).sum()
        dense[part.rows] = tried >= np.minimum(k_max, group.n_tiles[part.rows] - 1)
    return dense


# Measure rankings seed by seed (random orders one by one) on every slide.


_TOGETHER = 4096  # curves: of few slides, all orders are measured in one go


@dataclass(frozen=True, eq=False)
class MeasuredSeed:
    """What is measured of one seed on S slides; see :class:`SlideMetrics` for the names."""

    points: OperatingPoints
    table: Floats
    drops: Floats
    faithfulness: Floats
    area: Floats
    peak: Floats
    decisive: Decisive | None
    at: dict[Threshold, CountsAt]
    sampling: Sampling

    def of(self, slides: Chosen) -> MeasuredSeed:
        """What was measured of some slides."""
        return MeasuredSeed(
            points=self.points.of(slides),
            table=self.table[slides],
            drops=self.drops[slides],
            faithfulness=self.faithfulness[slides],
            area=self.area[slides],
            peak=self.peak[slides],
            decisive=None if self.decisive is None else self.decisive.of(slides),
            at={threshold: counts.of(slides) for threshold, counts in self.at.items()},
            sampling=self.sampling.of(slides),
        )


def measure_seeds(
    curves: CurveTable,
    orders: Sequence[Order],
    group: ViewSlides,
    settings: AnalysisSettings,
    ks: Integers,
    shares: Sequence[Threshold],
) -> list[MeasuredSeed]:
    """Measure rankings, each with one of its seeds, on the slides of a view.

    A slide's numbers depend on its own curves alone, so all orders of a small cohort are measured
    as if they were more slides: that costs a fraction of the time, and gives the same bits.

    Args:
        curves: They end at ``settings.k_max``.
        orders: Rankings and seeds.
        group: The slides and the classes followed.
        settings: Thresholds and counts.
        ks: Counts of the mean curve.
        shares: Thresholds relative to each slide's own confidence.
    """
    return [
        one
        for _, alike in groupby(orders, lambda order: bool(curves.deletions(*order)))
        for some in in_batches(list(alike), len(group))
        for one in _together(curves, some, group, settings, ks, shares)
    ]


def in_batches(orders: Sequence[Order], n_slides: int) -> Iterator[Sequence[Order]]:
    """As many orders at a time as fit into memory, at least one."""
    most = max(1, _TOGETHER // max(1, n_slides))
    return (orders[start : start + most] for start in range(0, len(orders), most))


def _together(
    curves: CurveTable,
    orders: Sequence[Order],
    group: ViewSlides,
    settings: AnalysisSettings,
    ks: Integers,
    shares: Sequence[Threshold],
) -> list[MeasuredSeed]:
    inserted = [c for order in orders for c in group.of(curves.get(*order))]
    removed = [curves.deletions(*order) for order in orders]
    deleted = [c for own in removed if own for c in group.of(own)]
    found = _measured(inserted, deleted, group.repeated(len(orders)), shares, settings, ks)
    if len(orders) > 1 and deleted and found.decisive is None:  # a single one may still have some
        alone = (_together(curves, [one], group, settings, ks, shares) for one in orders)
        return [one for own in alone for one in own]
    size = len(group)
    return [found.of(slice(n * size, (n + 1) * size)) for n in range(len(orders))]


def _measured(
    inserted: Sequence[Curve],
    deleted: Sequence[Curve],
    group: ViewSlides,
    shares: Sequence[Threshold],
    settings: AnalysisSettings,
    ks: Integers,
) -> MeasuredSeed:
    insert = stack([c.probs for c in inserted], [c.ks for c in inserted])
    delete = stack([c.probs for c in deleted], [c.ks for c in deleted], lowest=0) if deleted else ()
    grid = np.array(sorted({*PAPER_COUNTS, *settings.deletion}))
    lost = np.full((len(group), len(grid)), np.nan)
    if delete:
        lost = drops_on_grid(delete, group.full, group.targets, grid)
    reported, paper = np.isin(grid, settings.deletion), np.isin(grid, PAPER_COUNTS)
    points = operating_points(insert, group.full, group.targets, settings.kappa)
    decisive = decisive_of(insert, delete, group, settings.kappa, settings.k_max)
    thresholds = (*absolute(settings), Threshold(SHARE, relative=True), *shares)
    both_ways = delete if decisive is not None else ()
    at = counts_at(insert, both_ways, group, tuple(dict.fromkeys(thresholds)), settings.k_max)
    return MeasuredSeed(
        points=points,
        table=on_grid(insert, group.targets, ks),
        drops=lost[:, reported],
        faithfulness=slide_faithfulness(lost[:, paper], group.n_tiles),
        area=slide_faithfulness(lost[:, reported], group.n_tiles, settings.deletion),
        peak=_peak(insert, group.targets),
        decisive=decisive,
        at=at,
        sampling=sampling_of(
            insert, delete, group.targets, group.n_tiles, points.msk, settings.k_max
        ),
    )


def _peak(stacks: Sequence[Stack], targets: Integers) -> Floats:
    """Largest probability of the target at any count, ``[S]``."""
    peak = np.empty(len(targets))
    for part in stacks:
        peak[part.rows] = followed_class(part.probs, targets[part.rows]).max(axis=-1)
    return peak


# Measure every slide of an audit once: MSK, AUKC, deletion drops per slide and seed.


_HEADLINES = ("selector", "native")


@dataclass(frozen=True, eq=False, repr=False)
class SlideMetrics:
    """R seeds (or random orders) of one ranking on S slides.

    Attributes:
        ranking: Its name.
        k_max: Where counts are censored.
        msk: ``[R, S]`` Minimum Sufficient K; NaN where not reached.
        stable: ``[R, S]`` the same for the stable MSK.
        aukc: ``[R, S]`` area under the K-curve.
        specific: ``[R, S]`` 1 where the target comes before its rival, else 0.
        faithfulness: ``[R, S]`` Faithfulness AUC; NaN where a slide has too few tiles.
        drops: ``[S, D]`` deletion drops, mean over the seeds; NaN where not measured.
        curve: The mean reveal curve.
        area: ``[R, S]`` mean deletion drop over the reported counts; NaN where not measured.
        peak: ``[R, S]`` largest probability of the target at any count.
        decisive: What the decision hangs on; None where deletion was not measured at shared counts.
        at: MSK and decisive K by threshold: the audit's own, those of the sensitivity, and
            those relative to the full bag.
        sampling: Which counts the numbers rest on.

    Faithfulness, area and decisive K have the seeds whose tiles were deleted.
    """

    ranking: str
    k_max: int
    msk: Floats
    stable: Floats
    aukc: Floats
    specific: Floats
    faithfulness: Floats
    drops: Floats
    curve: MeanCurve
    area: Floats
    peak: Floats
    decisive: Decisive | None
    at: Mapping[Threshold, CountsAt]
    sampling: Sampling

    @cached_property
    def restricted(self) -> Floats:
        """``[R, S]`` counts, ``k_max`` where not reached."""
        return np.stack([restricted(row, self.k_max) for row in self.msk])

    @cached_property
    def reached(self) -> Floats:
        """``[R, S]`` 1 where reached, else 0."""
        return reached(self.msk).astype(np.float64)


def measure_rankings(
    curves: CurveTable, views: Mapping[View, ViewSlides], settings: AnalysisSettings
) -> dict[str, dict[View, SlideMetrics]]:
    """Measure the slides of every view under every ranking; curves end at ``settings.k_max``.

    A slide that two views follow to the same class is measured once, if they hold the same slides.
    Rankings are measured together where their mean curves have the same counts.
    """
    first, *others = views.values()
    if any(not np.array_equal(first.rows, other.rows) for other in others):
        alone = [measure_rankings(curves, {view: views[view]}, settings) for view in views]
        return {name: {v: m for one in alone for v, m in one[name].items()} for name in alone[0]}
    group, places = followed_once(list(views.values()))
    grids = {
        name: common_counts([c for own in curves.every_seed(name) for c in first.of(own)])
        for name in curves.rankings
    }
    alike: dict[bytes, list[Order]] = {}
    for order in curves.orders:
        alike.setdefault(grids[order[0]].tobytes(), []).append(order)
    measured: dict[str, list[MeasuredSeed]] = {name: [] for name in grids}
    for orders in alike.values():
        ks, shares = grids[orders[0][0]], relative(first, settings)
        found = measure_seeds(curves, orders, group, settings, ks, shares)
        for (name, _), one in zip(orders, found, strict=True):
            measured[name].append(one)
    return {
        name: {
            view: _over_seeds(name, [one.of(place) for one in own], grids[name], settings)
            for view, place in zip(views, places, strict=True)
        }
        for name, own in measured.items()
    }


def _over_seeds(
    ranking: str, measured: Sequence[MeasuredSeed], ks: Integers, settings: AnalysisSettings
) -> SlideMetrics:
    spread = spread_over_orders if ranking == "random" else spread_over_slides
    decisive = [one.decisive for one in measured if one.decisive is not None]
    deleted = [one for one in measured if one.sampling.n_deleted] or measured
    return SlideMetrics(
        ranking=ranking,
        k_max=settings.k_max,
        msk=np.stack([one.points.msk for one in measured]),
        stable=np.stack([one.points.stable for one in measured]),
        aukc=np.stack([one.points.aukc for one in measured]),
        specific=np.stack([one.points.specific for one in measured]),
        faithfulness=np.stack([one.faithfulness for one in deleted]),
        drops=defined_mean(np.stack([one.drops for one in measured]), axis=0),
        curve=spread(ks, [one.table for one in measured]),
        area=np.stack([one.area for one in deleted]),
        peak=np.stack([one.peak for one in measured]),
        decisive=Decisive.over_seeds(decisive) if decisive else None,
        sampling=Sampling.over_seeds([one.sampling for one in measured]),
        at={
            threshold: CountsAt.over_seeds([one.at[threshold] for one in measured])
            for threshold in measured[0].at
        },
    )


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredSlides:
    """The curves within the budget, and what was measured on them.

    Attributes:
        curves: Cut at the largest count.
        views: The slides of every view.
        metrics: By view and ranking.
    """

    curves: CurveTable
    views: dict[View, ViewSlides]
    metrics: dict[View, dict[str, SlideMetrics]]

    @property
    def headline(self) -> str:
        """The ranking by which slides are sorted: the selector where there is one."""
        names = self.curves.rankings
        return next((name for name in _HEADLINES if name in names), names[0])

    @property
    def hardest_first(self) -> Integers:
        """Slides by tiles needed under :attr:`headline`, then by the area under the curve."""
        own = self.metrics["prediction"][self.headline]
        needed, area = own.restricted.mean(axis=0), own.aukc.mean(axis=0)
        return np.lexsort((area, -needed)).astype(np.int64)


def measure_slides(
    curves: CurveTable,
    slides: Sequence[AuditedSlide],
    classes: Sequence[str],
    settings: AnalysisSettings,
) -> MeasuredSlides:
    """MSK, AUKC, Faithfulness and the rest of every slide, under every ranking, in every view.

    This is the only place where slides are measured: summary, CSV tables and report read it.

    Args:
        curves: The stored curves.
        slides: The slides that have curves.
        classes: Class names, in the model's order.
        settings: Threshold and budget.
    """
    views = slides_by_view(curves, slides, classes)
    revealed = curves.up_to(settings.k_max)
    measured = measure_rankings(revealed, views, settings)
    metrics = {view: {name: own[view] for name, own in measured.items()} for view in views}
    return MeasuredSlides(revealed, views, metrics)
