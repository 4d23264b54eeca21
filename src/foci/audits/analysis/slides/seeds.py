"""Measure rankings seed by seed (random orders one by one) on every slide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from foci.audits.analysis.answers.threshold import Threshold, absolute
from foci.audits.analysis.slides.rationale import CountsAt, Decisive, counts_at, decisive_of
from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.folder.curves import CurveTable, Order
from foci.audits.profiles import SHARE
from foci.audits.settings import AnalysisSettings
from foci.metrics import drops_on_grid, operating_points, slide_faithfulness, stack
from foci.metrics.cohort.sampling import Sampling, sampling_of
from foci.metrics.cohort.stacked import OperatingPoints, Stack, on_grid
from foci.metrics.curve.deletion import PAPER_COUNTS
from foci.metrics.curve.sufficiency import followed_class
from foci.metrics.inputs import Chosen, Floats, Integers
from foci.reveal import Curve

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
