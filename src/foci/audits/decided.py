"""Numbers over decided slides: those of which the model itself is at least kappa sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from foci.audits.answer_records import CountQuantile, CountQuartiles, OrderComparison
from foci.audits.measure import SlideMetrics, Threshold, ViewSlides
from foci.audits.records import AxisComparison, Mean, Number, Record
from foci.audits.settings import SHARE, AnalysisSettings
from foci.metrics import (
    case_means,
    compare,
    geometric_mean_ratio,
    percentile_interval,
    quantiles_with_missing,
)
from foci.metrics.compare import compare_areas, compare_orders
from foci.metrics.curve import reached
from foci.metrics.decisive import already_minimal, classes_without_decisive_sets, necessity_axis
from foci.metrics.inputs import Floats, Marks
from foci.metrics.stats import MIN_DRAWS, draws_between


class ClassNumbers(Record):
    """One ranking on the decided slides of one predicted class.

    Attributes:
        n_slides: Decided slides that are predicted so.
        msk: Quartiles of MSK.
        decisive: Quartiles of decisive K; None where it was not measured.
        decisive_share: Share of these slides of two or more tiles that have one.
    """

    n_slides: int
    msk: CountQuartiles | None
    decisive: CountQuartiles | None
    decisive_share: Number


class DecidedNumbers(Record):
    """One ranking on the slides that the model has decided, and on the others.

    Counts are censored at ``min(K_max, N)`` of each slide.

    Attributes:
        n_slides: Decided slides.
        msk: Quartiles of MSK; a slide that never reaches counts as infinite.
        stable: The same for the stable MSK.
        restricted: Mean MSK; ``min(K_max, N)`` where a slide never reaches.
        fallback: Share of reaching slides that fall back below kappa later.
        decisive: Quartiles of decisive K (the decision flips); None where it was not measured.
        decisive_share: Share of the decided slides of two or more tiles that have one.
        decisive_paper: Quartiles in the paper's form (at most 0.2 of the probability is left).
        decisive_paper_share: Share of slides that have one in that form.
        flips_back: Share of slides with a decisive K on which the decision comes back later.
        exact: Whether every count was tried; otherwise decisive K is an upper bound.
        relative: Quartiles of MSK at 0.95 of the full bag's own confidence, over *all* slides.
        undecided_crosses: Share of the undecided slides on which the ranking crosses kappa.
        undecided_overshoot: On those, mean confidence gained over the whole slide.
        per_class: The main numbers by predicted class.
    """

    n_slides: int
    msk: CountQuartiles | None
    stable: CountQuartiles | None
    restricted: Mean | None
    fallback: Number
    decisive: CountQuartiles | None
    decisive_share: Number
    decisive_paper: CountQuartiles | None
    decisive_paper_share: Number
    flips_back: Number
    exact: bool
    relative: CountQuartiles | None
    undecided_crosses: Number
    undecided_overshoot: Number
    per_class: dict[str, ClassNumbers] = Field(default_factory=dict)


def decided_numbers(
    own: SlideMetrics, group: ViewSlides, settings: AnalysisSettings, classes: Sequence[str]
) -> DecidedNumbers:
    """Medians, means and shares of one ranking over decided slides; seeds are pooled.

    Args:
        own: The ranking on the slides of the prediction view.
        group: Those slides.
        settings: Threshold, budget, intervals.
        classes: Class names, in the model's order.
    """
    decided, reaches = Threshold(settings.kappa).decided(group), reached(own.msk)
    longer = np.broadcast_to(group.n_tiles > own.k_max, own.msk.shape)
    return DecidedNumbers(
        n_slides=int(decided.sum()),
        msk=quartiles_of(own.msk[:, decided], longer[:, decided]),
        stable=quartiles_of(own.stable[:, decided], longer[:, decided]),
        restricted=_restricted(own, group, decided, settings),
        fallback=_share((own.stable != own.msk)[:, decided], reaches[:, decided]),
        **_decisive(own, group, decided),
        relative=quartiles_of(own.at[Threshold(SHARE, relative=True)].msk, longer),
        undecided_crosses=_share(reaches[:, ~decided]),
        undecided_overshoot=_overshoot(own, group, ~decided & reaches),
        per_class={
            name: _of_class(own, group, decided & (group.targets == index))
            for index, name in enumerate(classes)
        },
    )


def _of_class(own: SlideMetrics, group: ViewSlides, chosen: Marks) -> ClassNumbers:
    """The main numbers over the chosen slides."""
    longer = np.broadcast_to(group.n_tiles > own.k_max, own.msk.shape)
    decisive = _decisive(own, group, chosen)
    return ClassNumbers(
        n_slides=int(chosen.sum()),
        msk=quartiles_of(own.msk[:, chosen], longer[:, chosen]),
        decisive=decisive["decisive"],
        decisive_share=decisive["decisive_share"],
    )


def _decisive(own: SlideMetrics, group: ViewSlides, decided: Marks) -> dict[str, Any]:
    """The fields that decisive K fills."""
    if own.decisive is None:
        names = ("decisive", "decisive_share", "decisive_paper", "decisive_paper_share")
        return {**dict.fromkeys((*names, "flips_back")), "exact": False}
    counts, paper = own.decisive.count, own.decisive.paper
    kept = (own.decisive.outcome != "not assessable") & decided
    longer = np.broadcast_to(group.n_tiles - 1 > own.k_max, counts.shape)
    return {
        "decisive": quartiles_of(counts[kept], longer[kept]),
        "decisive_share": _share(reached(counts)[kept]),
        "decisive_paper": quartiles_of(paper[kept], longer[kept]),
        "decisive_paper_share": _share(reached(paper)[kept]),
        "flips_back": _share(own.decisive.flips_back[kept], reached(counts)[kept]),
        "exact": bool(own.decisive.exact.all()),
    }


def quartiles_of(counts: Floats, longer: Marks) -> CountQuartiles | None:
    """Quartiles over all slides and seeds; a missing count is censored where tiles remain."""
    flat = counts.ravel()
    if not len(flat):
        return None
    beyond = longer.ravel() & np.isnan(flat)
    low, median, high = (
        CountQuantile(value=one.value, missing=one.missing)
        for one in quantiles_with_missing(flat, beyond)
    )
    return CountQuartiles(low=low, median=median, high=high)


def _restricted(
    own: SlideMetrics, group: ViewSlides, decided: Marks, settings: AnalysisSettings
) -> Mean | None:
    """Mean over decided slides, ``min(K_max, N)`` where a slide never reaches."""
    if not decided.any():
        return None
    ceiling = np.minimum(own.k_max, group.n_tiles)
    values = np.where(np.isnan(own.msk), ceiling, own.msk).mean(axis=0)[decided]
    cases = group.cases_of(decided)
    draws = draws_between(case_means(values[:, None], cases, settings.n_boot)[:, 0], cases)
    interval = percentile_interval(float(values.mean()), draws, settings.level)
    return Mean(estimate=interval.estimate, low=interval.low, high=interval.high)


def _overshoot(own: SlideMetrics, group: ViewSlides, chosen: Marks) -> float | None:
    """Mean gain of the curve's highest probability over the whole slide, where chosen."""
    gains = (own.peak - group.sure)[chosen]
    return float(gains.mean()) if len(gains) else None


def _share(marks: ArrayLike, among: ArrayLike | None = None) -> float | None:
    """Share of true marks, of all or of those that are ``among``; None of none."""
    flat = np.asarray(marks).ravel() if among is None else np.asarray(marks)[np.asarray(among)]
    return float(flat.mean()) if len(flat) else None


# Compare two rankings over decided slides: sufficiency by MSK, necessity by decisive K.


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

    def _compare_orders(self, a: Floats, b: Floats, chosen: Marks) -> compare.OrderComparison:
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


def result_of(comparison: AxisComparison | None) -> compare.AxisResult | None:
    """The result on an axis; None where the axis does not count."""
    if comparison is None or comparison.result == "already minimal":
        return None
    return comparison.result
