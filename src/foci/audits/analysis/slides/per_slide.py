"""Measure every slide of an audit once: MSK, AUKC, deletion drops per slide and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foci.audits.analysis.answers.threshold import Threshold, relative
from foci.audits.analysis.slides.mean_curve import (
    MeanCurve,
    common_counts,
    spread_over_orders,
    spread_over_slides,
)
from foci.audits.analysis.slides.rationale import CountsAt, Decisive
from foci.audits.analysis.slides.seeds import MeasuredSeed, measure_seeds
from foci.audits.analysis.slides.views import ViewSlides, followed_once, slides_by_view
from foci.audits.folder.curves import CurveTable, Order
from foci.audits.folder.slides import AuditedSlide
from foci.audits.settings import AnalysisSettings, View
from foci.metrics import restricted
from foci.metrics.cohort.sampling import Sampling
from foci.metrics.curve.sufficiency import reached
from foci.metrics.inputs import Floats, Integers, defined_mean

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
