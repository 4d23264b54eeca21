"""Compare two rankings over decided slides: sufficiency by MSK, necessity by decisive K."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from foci.audits.analysis.answers.record import OrderComparison
from foci.audits.analysis.answers.threshold import Threshold
from foci.audits.analysis.slides.per_slide import SlideMetrics
from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.records import AxisComparison
from foci.audits.settings import AnalysisSettings
from foci.metrics import geometric_mean_ratio
from foci.metrics.cohort import orders
from foci.metrics.cohort.necessity import (
    already_minimal,
    classes_without_decisive_sets,
    necessity_axis,
)
from foci.metrics.cohort.orders import compare_areas, compare_orders
from foci.metrics.inputs import Floats, Marks
from foci.metrics.stats import MIN_DRAWS


@dataclass(frozen=True, eq=False)
class DecidedView:
    """The decided slides of the prediction view at one threshold.

    Attributes:
        metrics: Every ranking, on all slides.
        group: All slides.
        settings: Budget and intervals.
        threshold: The confidence that counts as decided and as recovered.
        decided: ``[S]`` slides that the model has decided.
        assessable: ``[S]`` those of them on which necessity is compared: two or more tiles, of a
            class that has decisive sets.
        without: Classes without decisive sets within K_max.
    """

    metrics: Mapping[str, SlideMetrics]
    group: ViewSlides
    settings: AnalysisSettings
    threshold: Threshold
    decided: Marks
    assessable: Marks
    without: tuple[int, ...]

    @classmethod
    def at(
        cls,
        threshold: Threshold,
        metrics: Mapping[str, SlideMetrics],
        group: ViewSlides,
        settings: AnalysisSettings,
    ) -> DecidedView:
        """Find the decided slides at a threshold, and the classes without decisive sets."""
        decided = threshold.decided(group)
        longer = decided & (group.n_tiles > 1)
        without = _without(threshold, metrics, group, longer)
        assessable = longer & ~np.isin(group.targets, without)
        return cls(metrics, group, settings, threshold, decided, assessable, without)

    @property
    def n_decided(self) -> int:
        """Slides that the model has decided."""
        return int(self.decided.sum())

    @property
    def has_intervals(self) -> bool:
        """Whether there are enough bootstrap draws for an interval, without which nothing is told.

        One patient has none either; such audits fail on the number of patients.
        """
        return self.settings.n_boot >= MIN_DRAWS

    @property
    def only_single_tiles(self) -> bool:
        """Whether every decided slide has a single tile, so that all orders are the same."""
        return bool((self.group.n_tiles[self.decided] == 1).all())

    @property
    def n_cases(self) -> int:
        """Patients with decided slides."""
        return len(set(self.group.cases_of(self.decided)))

    def compare(self, first: str, second: str) -> OrderComparison | None:
        """One ranking against another on both axes; None where one was not run."""
        if first not in self.metrics or second not in self.metrics or not self.decided.any():
            return None
        own = (self.metrics[name].at[self.threshold] for name in (first, second))
        a, b = (counts.msk[:, self.decided] for counts in own)
        ratio = geometric_mean_ratio(a.mean(axis=0), b.mean(axis=0))
        return OrderComparison(
            first=first,
            second=second,
            sufficiency=self._sufficiency(a, b),
            necessity=self._necessity(self.metrics[first], self.metrics[second]),
            ratio=ratio.ratio,
            n_ratio=ratio.n,
        )

    def _sufficiency(self, a: Floats, b: Floats) -> AxisComparison:
        found = self._compare_orders(a, b, self.decided)
        return AxisComparison.of("sufficiency", "MSK", found, informative=not already_minimal(b))

    def _compare_orders(self, a: Floats, b: Floats, chosen: Marks) -> orders.OrderComparison:
        return compare_orders(
            a,
            b,
            self.group.cases_of(chosen),
            n_boot=self.settings.n_boot,
            level=self.settings.level,
        )

    def _necessity(self, first: SlideMetrics, second: SlideMetrics) -> AxisComparison | None:
        """Decisive K where enough slides have one, else the deletion area."""
        kept = self.assessable
        if not kept.any():
            return None
        a, b = (metrics.at[self.threshold].decisive for metrics in (first, second))
        if a is not None and b is not None:
            a, b = a[:, kept], b[:, kept]
            if necessity_axis(a, b) == "decisive K":
                found = self._compare_orders(a, b, kept)
                return AxisComparison.of("necessity", "decisive K", found)
        found = compare_areas(
            first.area[:, kept],
            second.area[:, kept],
            self.group.cases_of(kept),
            n_boot=self.settings.n_boot,
            level=self.settings.level,
        )
        return AxisComparison.of("necessity", "deletion area", found) if found.n_slides else None


def _without(
    threshold: Threshold, metrics: Mapping[str, SlideMetrics], group: ViewSlides, chosen: Marks
) -> tuple[int, ...]:
    """Classes in which no ranking finds a decisive set on at least a tenth of the slides."""
    counts = [own.at[threshold].decisive for own in metrics.values()]
    known = [table[:, chosen] for table in counts if table is not None]
    if not known or not chosen.any():
        return ()
    return classes_without_decisive_sets(known, group.targets[chosen])


def result_of(comparison: AxisComparison | None) -> orders.AxisResult | None:
    """The result on an axis; None where the axis does not count."""
    if comparison is None or comparison.result == "already minimal":
        return None
    return comparison.result
