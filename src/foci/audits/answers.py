"""Answer the three questions of an audit, over the slides that the model has decided.

Two rankings are compared on two axes: sufficiency (MSK: do the first tiles suffice?) and necessity
(decisive K, or the deletion area where that is rare: does the decision hang on them?). Every answer
comes with sentences, made from the numbers that it stands on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np

from foci.audits.measure import MeasuredSlides, Threshold, absolute, few_decided, relative
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
from foci.metrics import CountQuantile, geometric_mean_ratio
from foci.metrics.answers import MIN_CASES, Belief, BetterOrder, believable, better_order, sensitive
from foci.metrics.compare import AxisResult, compare_areas, compare_orders
from foci.metrics.decisive import already_minimal, classes_without_decisive_sets, necessity_axis
from foci.metrics.inputs import Floats, Marks
from foci.metrics.stats import MIN_DRAWS
from foci.words import counted, decimals

NATIVE, RANDOM, SELECTOR = "native", "random", "selector"
EVIDENCE = "evidence"
CANDIDATES = (EVIDENCE, SELECTOR)
"""Rankings that may be a better order where no readout was chosen, the first that was run."""

_BELIEFS: Mapping[Belief, str] = {
    "yes": "The map's order beats random orders on every axis that can tell them apart.",
    "only as a pointer": "The decision hangs on the tiles at the top of the map, but revealing "
    "them in the map's order recovers the decision no faster than random orders do.",
    "sufficient, not decisive": "The first tiles of the map recover the decision faster than "
    "random tiles, but the model decides the same way without them.",
    "no better than chance": "Random orders do as well as the map, or better.",
    "inconclusive": "The data do not settle whether the map beats random orders.",
}
_ORDERS: Mapping[BetterOrder, str] = {
    "headroom": "There is a better order than the map's.",
    "mixed": "The candidate is better on one axis and worse on the other.",
    "native is better": "The map's order is better than the candidate.",
    "native suffices": "The candidate and the map's order do equally well, and the map can "
    "be believed.",
    "no better order found": "The candidate does as well as the map's order, which is not "
    "shown to beat chance.",
    "inconclusive": "The data do not settle whether the candidate is better.",
}
_SINGLE_TILES = "Every decided slide has a single tile: all orders are the same one."
_RESULTS = {
    "better": "better than",
    "worse": "worse than",
    "same": "as good as",
    "unclear": "not told apart from",
}


@dataclass(frozen=True, eq=False)
class DecidedView:
    """The decided slides of the prediction view at one threshold."""

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

    ``numbers`` are those of every ranking over decided slides.
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
    selector = view.compare(SELECTOR, EVIDENCE)
    without = [classes[index] for index in view.without]
    return Answers(
        n_slides=len(slides),
        n_decided=view.n_decided,
        n_cases=view.n_cases,
        map=MapAnswer(
            answer=belief,
            sentences=on_map(belief, against_chance, view),
            comparison=against_chance,
        ),
        tiles=TilesAnswer(
            answer=tiles_in_short(numbers[in_use], settings.k_max),
            sentences=on_tiles(in_use, numbers[in_use], view, without),
            ranking=in_use,
            decisive=numbers[in_use].decisive,
            n_slides=int(view.longer.sum()),
            share=numbers[in_use].decisive_share,
            without=without,
        ),
        order=OrderAnswer(
            answer=order,
            sentences=on_order(order, against_native, against_random, selector, view),
            candidate=candidate,
            against_native=against_native,
            against_random=against_random,
            selector=selector,
        ),
        sensitivity=repeated,
        sensitive=[
            question
            for question in get_args(Question)
            if sensitive({one.kappa: getattr(one, question) for one in repeated})
        ],
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


# The answers in sentences


def on_map(answer: Belief, comparison: OrderComparison | None, view: DecidedView) -> list[str]:
    """Why the map can, or cannot, be believed."""
    if comparison is None:
        missing = [name for name in ("native", "random") if name not in view.rankings]
        if missing:
            run = "was" if len(missing) == 1 else "were"
            return [f"{' and '.join(missing)} {run} not run: the map was not compared with chance."]
        return [_not_assessable(view)]
    slides = f"{counted(view.n_decided, 'decided slide')} of {counted(view.n_cases, 'patient')}"
    opening = _BELIEFS.get(answer) or _not_assessable(view)
    return [f"{opening} ({slides}.)", *_axes(comparison)]


def on_order(
    answer: BetterOrder,
    native: OrderComparison | None,
    chance: OrderComparison | None,
    selector: OrderComparison | None,
    view: DecidedView,
) -> list[str]:
    """Why there is, or is not, a better order."""
    if native is None:
        if not view.n_decided:
            return [_not_assessable(view)]
        against_chance = [] if chance is None else _axes(chance)
        return ["No candidate was compared with the map's order.", *against_chance]
    lines = [_ORDERS.get(answer) or _not_assessable(view), *_axes(native)]
    if chance is not None and answer in ("headroom", "inconclusive"):
        lines += _axes(chance)
    if selector is not None:
        lines.append(_training(selector))
    return lines


def tiles_in_short(numbers: DecidedNumbers, k_max: int) -> str:
    """The median of decisive K in a few words."""
    if numbers.decisive is None:
        return "not assessable"
    count = numbers.decisive.median
    return in_words(count, k_max) + (" tiles" if count.missing is None else "")


def on_tiles(
    ranking: str, numbers: DecidedNumbers, view: DecidedView, without: list[str]
) -> list[str]:
    """How many tiles the decision hangs on, under which order, on how many slides."""
    k_max, n = view.settings.k_max, len(view.measured.slides)
    undecided = n - view.n_decided
    lines = []
    few = few_decided(view.measured.slides, view.settings)
    if few:
        lines.append(
            f"The model is less than {view.threshold.value:g} sure of {undecided} of "
            f"{counted(n, 'slide')}: read the relative answers beside these."
        )
    if not view.n_decided:
        return [*lines, _not_assessable(view)]
    if numbers.decisive is None or numbers.msk is None:
        why = "No decided slide has deletion curves that could tell."
        return [*lines, _SINGLE_TILES if view.only_single_tiles else why]
    low, high = (in_words(end, k_max) for end in (numbers.decisive.low, numbers.decisive.high))
    median = in_words(numbers.decisive.median, k_max)
    if numbers.decisive.median.missing is None:
        bound = "" if numbers.exact else " (upper bounds: not every count was tried)"
        lines.append(
            f"Under the {ranking} order the decision hangs on {median} tiles on the median slide; "
            f"quartiles {low} and {high}{bound}."
        )
    else:
        within = f"of up to {k_max} tiles" if numbers.decisive.median.missing == "beyond" else ""
        lines.append(
            f"Under the {ranking} order the median slide has no decisive set {within}".rstrip()
            + f"; quartiles {low} and {high}."
        )
    lines.append(
        f"{in_words(numbers.msk.median, k_max)} would already suffice on the median slide (MSK)."
        if numbers.msk.median.missing is None
        else "On the median slide no revealed count suffices (MSK)."
    )
    if undecided and not few:
        lines.append(f"{counted(undecided, 'slide')} that the model has not decided stay out.")
    if view.n_cases == 1:
        whose = "one slide" if view.n_decided == 1 else "one patient"
        lines.append(f"All of this is of {whose}: it says nothing of others.")
    if without:
        lines.append(f"No decisive sets within {k_max} tiles: {', '.join(without)}.")
    return lines


def in_words(count: CountQuantile, k_max: int) -> str:
    """A count for people: a number, more than K_max, or none.

    >>> in_words(CountQuantile(12.0, None), 256), in_words(CountQuantile(2.5, None), 256)
    ('12', '2.5')
    >>> in_words(CountQuantile(None, "beyond"), 256)
    'more than 256'
    """
    if count.value is None:
        return f"more than {k_max}" if count.missing == "beyond" else "none"
    return decimals(count.value, 1 if count.value < 100 else 0).removesuffix(".0")


def _not_assessable(view: DecidedView) -> str:
    """Why a question has no answer."""
    if not view.n_decided:
        return "The model has decided no slide: there is no decision to recover."
    if view.only_single_tiles:
        return _SINGLE_TILES
    if view.n_cases < MIN_CASES:
        patients = counted(view.n_cases, "patient")
        return f"Only {patients} with decided slides: at least {MIN_CASES} are needed."
    if not view.has_intervals:
        draws = counted(view.settings.n_boot, "bootstrap draw")
        return f"{draws} cannot give an interval: raise n_boot."
    return "No axis can tell these orders apart."


def _axes(comparison: OrderComparison) -> list[str]:
    """Each axis in a sentence: who needs fewer tiles, on how many slides."""
    first, second = comparison.first, comparison.second
    lines = []
    for axis in (comparison.sufficiency, comparison.necessity):
        if axis is None:
            continue
        name = axis.axis.capitalize()
        if axis.result == "already minimal":
            lines.append(
                f"{name}: {second} needs one tile on half of the slides, "
                f"so that {first} has no room to need fewer."
            )
            continue
        ends = "no interval"
        if axis.low is not None and axis.high is not None:
            ends = f"{_signed(axis.low)} to {_signed(axis.high)}"
        lines.append(
            f"{name} ({axis.measure}): {first} is {_RESULTS[axis.result]} {second} "
            f"(net share of slides {_signed(axis.d)}, {ends}; {axis.n_differ} of "
            f"{counted(axis.n_cases, 'patient')} differ)."
        )
    return lines


def _signed(value: float) -> str:
    text = decimals(value, 2)
    return text.replace("-", "\N{MINUS SIGN}") if text.startswith("-") else f"+{text}"


def _training(selector: OrderComparison) -> str:
    """Whether a trained selector adds anything to the training-free ranking."""
    axes = selector.sufficiency, selector.necessity
    results = {axis.result for axis in axes if axis is not None}
    if "better" in results and "worse" not in results:
        return f"Training pays here: the selector beats {selector.second}."
    if "worse" in results and "better" not in results:
        return f"Training does not pay here: the selector is worse than {selector.second}."
    return f"Training a selector is not shown to add anything to {selector.second}."
