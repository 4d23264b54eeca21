"""One ranking on the slides of one view: a number per slide and seed."""

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
from foci.audits.analysis.views import Population, populations
from foci.audits.folder.curves import Curve, CurveTable, deletions, within
from foci.audits.folder.slides import AuditedSlide
from foci.audits.settings import Reading, View
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


@dataclass(frozen=True, eq=False)
class Measured:
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


def measure(curves: CurveTable, ranking: str, population: Population, reading: Reading) -> Measured:
    """Read the stored curves of one ranking; they end at ``reading.k_max``."""
    grid = np.array(sorted({*PAPER_COUNTS, *reading.deletion}))
    points, areas, drops, tables = [], [], [], []
    seeds = curves.seeds(ranking)
    ks = common_counts(population.of(curves.get(ranking, seeds[0])))
    for seed in seeds:
        inserted = population.of(curves.get(ranking, seed))
        stacks = stack([c.probs for c in inserted], [c.ks for c in inserted])
        found = operating_points(stacks, population.full, population.targets, reading.kappa)
        points.append((found.msk, found.stable, found.aukc, found.specific))
        tables.append(on_grid(stacks, population.targets, ks))
        lost = _drops(deletions(curves, ranking, seed), population, grid)
        drops.append(lost[:, np.isin(grid, reading.deletion)])
        paper = lost[:, np.isin(grid, PAPER_COUNTS)]
        areas.append(slide_faithfulness(paper, population.n_tiles))
    spread = spread_over_orders if ranking == "random" else spread_over_slides
    msk, stable, aukc, specific = np.stack(points, axis=1)
    return Measured(
        ranking=ranking,
        k_max=reading.k_max,
        msk=msk,
        stable=stable,
        aukc=aukc,
        specific=specific,
        faithfulness=np.stack(areas),
        drops=defined_mean(np.stack(drops), axis=0),
        curve=spread(ks, tables),
    )


def _drops(deleted: Sequence[Curve], population: Population, grid: Integers) -> Floats:
    if not deleted:
        return np.full((len(population), len(grid)), np.nan)
    chosen = population.of(deleted)
    stacks = stack([c.probs for c in chosen], [c.ks for c in chosen], lowest=0)
    return drops_on_grid(stacks, population.full, population.targets, grid)


@dataclass(frozen=True, eq=False)
class Measurement:
    """The curves within the budget, and what was measured on them.

    Attributes:
        curves: Cut at the largest count.
        views: The slides of every view.
        measured: By view and ranking.
    """

    curves: CurveTable
    views: dict[View, Population]
    measured: dict[View, dict[str, Measured]]


def measure_all(
    curves: CurveTable, slides: Sequence[AuditedSlide], classes: Sequence[str], reading: Reading
) -> Measurement:
    """Measure every slide under every ranking.

    Args:
        curves: The stored curves.
        slides: The slides that have curves.
        classes: Class names, in the model's order.
        reading: Threshold and budget.
    """
    views = populations(curves, slides, classes)
    revealed = within(curves, reading.k_max)
    measured = {
        view: {name: measure(revealed, name, group, reading) for name in revealed.rankings}
        for view, group in views.items()
    }
    return Measurement(revealed, views, measured)
