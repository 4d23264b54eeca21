"""Answer the three questions of an audit, over the slides that the model has decided.

Two rankings are compared on two axes: sufficiency (MSK: do the first tiles suffice?) and necessity
(decisive K, or the deletion area where that is rare: does the decision hang on them?).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foci.audits import sentences
from foci.audits.measure import MeasuredSlides, Threshold, absolute, relative
from foci.audits.records import (
    Answers,
    AnswersAt,
    AnswersAtShare,
    AxisComparison,
    CountQuartiles,
    DecidedNumbers,
    MapAnswer,
    OrderAnswer,
    OrderComparison,
    Question,
    TilesAnswer,
)
from foci.audits.settings import AnalysisSettings
from foci.metrics import geometric_mean_ratio
from foci.metrics.answers import Belief, BetterOrder, believable, better_order, sensitive
from foci.metrics.compare import AxisResult, compare_areas, compare_orders
from foci.metrics.decisive import already_minimal, classes_without_decisive_sets, necessity_axis
from foci.metrics.inputs import Floats, Marks
from foci.metrics.stats import MIN_DRAWS

NATIVE, RANDOM, SELECTOR = "native", "random", "selector"
EVIDENCE = "evidence"
CANDIDATES = (EVIDENCE, SELECTOR)
"""Rankings that may be a better order where no readout was chosen, the first that was run."""


@dataclass(frozen=True, eq=False)
class DecidedView:
    """The decided slides of the prediction view at one threshold.

    Attributes:
        measured: Every ranking, on all slides.
        settings: Budget and intervals.
        threshold: The confidence that counts as decided and as recovered.
    """

    measured: MeasuredSlides
    settings: AnalysisSettings
    threshold: Threshold

    @property
    def rankings(self) -> tuple[str, ...]:
        """Names of the rankings that were run."""
        return self.measured.curves.rankings

    @cached_property
    def decided(self) -> Marks:
        """``[S]`` slides that the model has decided."""
        return self.threshold.decided(self.measured.slides)

    @cached_property
    def longer(self) -> Marks:
        """``[S]`` decided slides of two or more tiles."""
        return self.decided & (self.measured.slides.n_tiles > 1)

    @cached_property
    def without(self) -> tuple[int, ...]:
        """Classes in which no ranking finds a decisive set on at least a tenth of the slides."""
        counts = [self.counts(name)[1] for name in self.rankings]
        known = [table[:, self.longer] for table in counts if table is not None]
        if not known or not self.longer.any():
            return ()
        return classes_without_decisive_sets(known, self.measured.slides.predictions[self.longer])

    @cached_property
    def assessable(self) -> Marks:
        """``[S]`` slides on which necessity is compared: of a class that has decisive sets."""
        return self.longer & ~np.isin(self.measured.slides.predictions, self.without)

    @property
    def n_decided(self) -> int:
        """Slides that the model has decided."""
        return int(self.decided.sum())

    @property
    def n_cases(self) -> int:
        """Patients with decided slides."""
        return len(set(self.measured.slides.cases_of(self.decided)))

    @property
    def has_intervals(self) -> bool:
        """Whether there are enough bootstrap draws for an interval: no answer without one.

        One patient has none either; such audits fail on the number of patients.
        """
        return self.settings.n_boot >= MIN_DRAWS

    @property
    def only_single_tiles(self) -> bool:
        """Whether every decided slide has a single tile, so that all orders are the same."""
        return bool((self.measured.slides.n_tiles[self.decided] == 1).all())

    def counts(self, ranking: str) -> tuple[Floats, Floats | None]:
        """``[R, S]`` MSK and decisive K at the threshold; None where deletion was not measured."""
        own = self.measured.of(ranking)
        both = own.with_decisive
        decisive = None if both is None else both.at(both.decisive_at, self.threshold)
        return own.at(own.msk_at, self.threshold), decisive

    def compare(self, first: str, second: str) -> OrderComparison | None:
        """One ranking against another on both axes; None where one was not run."""
        if first not in self.rankings or second not in self.rankings or not self.decided.any():
            return None
        a, b = (self.counts(name)[0][:, self.decided] for name in (first, second))
        found = compare_orders(a, b, **self._patients(self.decided))
        ratio = geometric_mean_ratio(a.mean(axis=0), b.mean(axis=0))
        return OrderComparison(
            first=first,
            second=second,
            sufficiency=AxisComparison.of(
                "sufficiency", "MSK", found, informative=not already_minimal(b)
            ),
            necessity=self._necessity(first, second),
            ratio=ratio.ratio,
            n_ratio=ratio.n,
        )

    def _necessity(self, first: str, second: str) -> AxisComparison | None:
        """Decisive K where enough slides have one, else the deletion area."""
        kept = self.assessable
        if not kept.any():
            return None
        (_, a), (_, b) = self.counts(first), self.counts(second)
        if a is not None and b is not None:
            a, b = a[:, kept], b[:, kept]
            if necessity_axis(a, b) == "decisive K":
                found = compare_orders(a, b, **self._patients(kept))
                return AxisComparison.of("necessity", "decisive K", found)
        areas = (self.measured.of(name).with_deletions.area[:, kept] for name in (first, second))
        found = compare_areas(*areas, **self._patients(kept))
        return AxisComparison.of("necessity", "deletion area", found) if found.n_slides else None

    def _patients(self, chosen: Marks) -> dict[str, Any]:
        """Patients of the chosen slides, and how they are resampled."""
        return {
            "cases": self.measured.slides.cases_of(chosen),
            "n_boot": self.settings.n_boot,
            "level": self.settings.level,
        }


def answer_questions(
    measured: MeasuredSlides,
    classes: Sequence[str],
    settings: AnalysisSettings,
    numbers: Mapping[str, DecidedNumbers],
) -> Answers:
    """Can I believe the map? How many tiles does the decision hang on? Is there a better order?

    Args:
        measured: Every ranking on every slide.
        classes: Class names, in the model's order.
        settings: Threshold, budget, intervals, further thresholds.
        numbers: Every ranking over decided slides.
    """
    slides, rankings = measured.slides, measured.curves.rankings
    view = DecidedView(measured, settings, Threshold(settings.kappa))
    wanted = (settings.readout, *CANDIDATES)
    candidate = next((name for name in wanted if name in rankings), None)
    belief, against_chance = _belief(view)
    order, against_native, against_random = _order(view, candidate, belief)
    # the ranking whose tiles to look at: the candidate where it is better, else native
    in_use = NATIVE if NATIVE in rankings else candidate or rankings[0]
    if candidate is not None and order == "headroom":
        in_use = candidate
    repeated = []
    for threshold in absolute(settings):
        again = DecidedView(measured, settings, threshold)
        own = threshold == view.threshold
        map_then, order_then = (belief, order) if own else _both(again, candidate)
        repeated.append(
            AnswersAt(
                kappa=threshold.value,
                n_decided=again.n_decided,
                n_cases=again.n_cases,
                map=map_then,
                order=order_then,
            )
        )
    by_question: dict[Question, dict[float, Belief | BetterOrder]] = {
        "map": {one.kappa: one.map for one in repeated},
        "order": {one.kappa: one.order for one in repeated},
    }
    selector = view.compare(SELECTOR, EVIDENCE)
    without = [classes[index] for index in view.without]
    return Answers(
        n_slides=len(slides),
        n_decided=view.n_decided,
        n_cases=view.n_cases,
        map=MapAnswer(
            answer=belief,
            sentences=sentences.on_map(belief, against_chance, view),
            comparison=against_chance,
        ),
        tiles=TilesAnswer(
            answer=sentences.tiles_in_short(numbers[in_use], settings.k_max),
            sentences=sentences.on_tiles(in_use, numbers[in_use], view, without),
            ranking=in_use,
            decisive=numbers[in_use].decisive,
            n_slides=int(view.longer.sum()),
            share=numbers[in_use].decisive_share,
            without=without,
        ),
        order=OrderAnswer(
            answer=order,
            sentences=sentences.on_order(order, against_native, against_random, selector, view),
            candidate=candidate,
            against_native=against_native,
            against_random=against_random,
            selector=selector,
        ),
        sensitivity=repeated,
        sensitive=[question for question, found in by_question.items() if sensitive(found)],
        relative=[
            _at_share(DecidedView(measured, settings, threshold), candidate, in_use)
            for threshold in relative(slides, settings)
        ],
    )


def result_of(comparison: AxisComparison | None) -> AxisResult | None:
    """The result on an axis; None where the axis does not count."""
    if comparison is None or comparison.result == "already minimal":
        return None
    return comparison.result


def _belief(view: DecidedView) -> tuple[Belief, OrderComparison | None]:
    found = view.compare(NATIVE, RANDOM)
    if found is None or not view.has_intervals:
        return "not assessable", found
    axes = result_of(found.sufficiency), result_of(found.necessity)
    return believable(*axes, n_cases=view.n_cases), found


def _order(
    view: DecidedView, candidate: str | None, belief: Belief
) -> tuple[BetterOrder, OrderComparison | None, OrderComparison | None]:
    if candidate is None:
        return "not assessable", None, None
    native, chance = view.compare(candidate, NATIVE), view.compare(candidate, RANDOM)
    if native is None or not view.has_intervals:
        return "not assessable", native, chance
    answer = better_order(
        result_of(native.sufficiency),
        result_of(native.necessity),
        sufficiency_over_random=None if chance is None else result_of(chance.sufficiency),
        necessity_over_random=None if chance is None else result_of(chance.necessity),
        belief=belief,
        n_cases=view.n_cases,
    )
    return answer, native, chance


def _both(view: DecidedView, candidate: str | None) -> tuple[Belief, BetterOrder]:
    """The answers on the map and on a better order."""
    belief = _belief(view)[0]
    return belief, _order(view, candidate, belief)[0]


def _at_share(view: DecidedView, candidate: str | None, in_use: str) -> AnswersAtShare:
    """Answers and counts over all slides, at a share of each slide's own confidence."""
    belief, order = _both(view, candidate)
    sizes, k_max = view.measured.slides.n_tiles, view.settings.k_max
    msk, decisive = view.counts(in_use)
    quartiles = None
    if decisive is not None:
        left = np.broadcast_to(sizes - 1 > k_max, decisive.shape)
        quartiles = CountQuartiles.over(decisive[:, sizes > 1], left[:, sizes > 1])
    return AnswersAtShare(
        share=view.threshold.value,
        n_slides=len(sizes),
        n_cases=view.n_cases,
        map=belief,
        order=order,
        ranking=in_use,
        msk=CountQuartiles.over(msk, np.broadcast_to(sizes > k_max, msk.shape)),
        decisive=quartiles,
    )
