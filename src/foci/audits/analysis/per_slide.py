"""Measure every slide of an audit once: MSK, AUKC, deletion drops per slide and seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foci.audits.analysis.mean_curve import (
    MeanCurve,
    common_counts,
    spread_over_orders,
    spread_over_slides,
)
from foci.audits.analysis.views import ViewSlides, slides_by_view
from foci.audits.folder.curves import CurveTable
from foci.audits.folder.slides import AuditedSlide
from foci.audits.settings import AnalysisSettings, View
from foci.metrics import (
    drops_on_grid,
    operating_points,
    restricted,
    slide_faithfulness,
    stack,
)
from foci.metrics.cohort.stacked import on_grid
from foci.metrics.curve.deletion import PAPER_COUNTS
from foci.metrics.curve.sufficiency import reached
from foci.metrics.inputs import Floats, Integers, defined_mean
from foci.reveal import Curve

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

    @cached_property
    def restricted(self) -> Floats:
        """``[R, S]`` counts, ``k_max`` where not reached."""
        return np.stack([restricted(row, self.k_max) for row in self.msk])

    @cached_property
    def reached(self) -> Floats:
        """``[R, S]`` 1 where reached, else 0."""
        return reached(self.msk).astype(np.float64)


def measure_ranking(
    curves: CurveTable, ranking: str, group: ViewSlides, settings: AnalysisSettings
) -> SlideMetrics:
    """Measure the slides of one view under one ranking; its curves end at ``settings.k_max``."""
    grid = np.array(sorted({*PAPER_COUNTS, *settings.deletion}))
    points, areas, drops, tables = [], [], [], []
    seeds = curves.seeds(ranking)
    ks = common_counts(group.of(curves.get(ranking, seeds[0])))
    for seed in seeds:
        inserted = group.of(curves.get(ranking, seed))
        stacks = stack([c.probs for c in inserted], [c.ks for c in inserted])
        found = operating_points(stacks, group.full, group.targets, settings.kappa)
        points.append((found.msk, found.stable, found.aukc, found.specific))
        tables.append(on_grid(stacks, group.targets, ks))
        lost = _drops(curves.deletions(ranking, seed), group, grid)
        drops.append(lost[:, np.isin(grid, settings.deletion)])
        paper = lost[:, np.isin(grid, PAPER_COUNTS)]
        areas.append(slide_faithfulness(paper, group.n_tiles))
    spread = spread_over_orders if ranking == "random" else spread_over_slides
    msk, stable, aukc, specific = np.stack(points, axis=1)
    return SlideMetrics(
        ranking=ranking,
        k_max=settings.k_max,
        msk=msk,
        stable=stable,
        aukc=aukc,
        specific=specific,
        faithfulness=np.stack(areas),
        drops=defined_mean(np.stack(drops), axis=0),
        curve=spread(ks, tables),
    )


def _drops(deleted: Sequence[Curve], group: ViewSlides, grid: Integers) -> Floats:
    if not deleted:
        return np.full((len(group), len(grid)), np.nan)
    chosen = group.of(deleted)
    stacks = stack([c.probs for c in chosen], [c.ks for c in chosen], lowest=0)
    return drops_on_grid(stacks, group.full, group.targets, grid)


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
    metrics = {
        view: {name: measure_ranking(revealed, name, group, settings) for name in revealed.rankings}
        for view, group in views.items()
    }
    return MeasuredSlides(revealed, views, metrics)
