"""Answer the three questions of an audit, and repeat the answers at other thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from foci.audits import sentences
from foci.audits.answer_records import (
    Answers,
    AnswersAt,
    AnswersAtShare,
    MapAnswer,
    OrderAnswer,
    OrderComparison,
    Question,
    TilesAnswer,
)
from foci.audits.decided import DecidedNumbers, DecidedView, quartiles_of, result_of
from foci.audits.measure import SlideMetrics, Threshold, ViewSlides, absolute, relative
from foci.audits.settings import AnalysisSettings
from foci.metrics.answers import Belief, BetterOrder, believable, better_order, sensitive

NATIVE, RANDOM, SELECTOR = "native", "random", "selector"
EVIDENCE = "evidence"
CANDIDATES = (EVIDENCE, SELECTOR)
"""Rankings that may be a better order where no readout was chosen, the first that was run."""


def answer_questions(
    metrics: Mapping[str, SlideMetrics],
    group: ViewSlides,
    classes: Sequence[str],
    settings: AnalysisSettings,
    numbers: Mapping[str, DecidedNumbers],
) -> Answers:
    """Can I believe the map? How many tiles does the decision hang on? Is there a better order?

    Args:
        metrics: Every ranking on the slides of the prediction view.
        group: Those slides.
        classes: Class names, in the model's order.
        settings: Threshold, budget, intervals, further thresholds.
        numbers: Every ranking over decided slides.
    """
    view = DecidedView.at(Threshold(settings.kappa), metrics, group, settings)
    wanted = (settings.readout, *CANDIDATES)
    candidate = next((name for name in wanted if name in metrics), None)
    belief, against_chance = _belief(view)
    order, against_native, against_random = _order(view, candidate, belief)
    repeated = [
        _answers_at(view, belief, order)
        if threshold == view.threshold
        else _repeat(DecidedView.at(threshold, metrics, group, settings), candidate)
        for threshold in absolute(settings)
    ]
    in_use = _in_use(metrics, order, candidate)
    selector = None
    if candidate is not None and EVIDENCE in metrics:
        selector = view.compare(SELECTOR, EVIDENCE)
    return Answers(
        n_slides=len(group),
        n_decided=view.n_decided,
        n_cases=view.n_cases,
        map=MapAnswer(
            answer=belief,
            sentences=sentences.on_map(belief, against_chance, view),
            comparison=against_chance,
        ),
        tiles=_tiles(in_use, numbers[in_use], view, [classes[index] for index in view.without]),
        order=OrderAnswer(
            answer=order,
            sentences=sentences.on_order(order, against_native, against_random, selector, view),
            candidate=candidate,
            against_native=against_native,
            against_random=against_random,
            selector=selector,
        ),
        sensitivity=repeated,
        sensitive=_sensitive(repeated),
        relative=[
            _at_share(DecidedView.at(threshold, metrics, group, settings), candidate, in_use)
            for threshold in relative(group, settings)
        ],
    )


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


def _repeat(view: DecidedView, candidate: str | None) -> AnswersAt:
    belief = _belief(view)[0]
    return _answers_at(view, belief, _order(view, candidate, belief)[0])


def _answers_at(view: DecidedView, belief: Belief, order: BetterOrder) -> AnswersAt:
    return AnswersAt(
        kappa=view.threshold.value,
        n_decided=view.n_decided,
        n_cases=view.n_cases,
        map=belief,
        order=order,
    )


def _at_share(view: DecidedView, candidate: str | None, in_use: str) -> AnswersAtShare:
    """Answers and counts over all slides, at a share of each slide's own confidence."""
    belief = _belief(view)[0]
    counts, group = view.metrics[in_use].at[view.threshold], view.group
    more = np.broadcast_to(group.n_tiles > view.settings.k_max, counts.msk.shape)
    decisive, kept = None, group.n_tiles > 1
    if counts.decisive is not None:
        left = np.broadcast_to(group.n_tiles - 1 > view.settings.k_max, counts.msk.shape)
        decisive = quartiles_of(counts.decisive[:, kept], left[:, kept])
    return AnswersAtShare(
        share=view.threshold.value,
        n_slides=len(group),
        n_cases=view.n_cases,
        map=belief,
        order=_order(view, candidate, belief)[0],
        ranking=in_use,
        msk=quartiles_of(counts.msk, more),
        decisive=decisive,
    )


def _sensitive(repeated: Sequence[AnswersAt]) -> list[Question]:
    """Questions with two different conclusive answers among the thresholds."""
    by_question: dict[Question, dict[float, Belief | BetterOrder]] = {
        "map": {one.kappa: one.map for one in repeated},
        "order": {one.kappa: one.order for one in repeated},
    }
    return [question for question, answers in by_question.items() if sensitive(answers)]


def _in_use(metrics: Mapping[str, SlideMetrics], order: BetterOrder, candidate: str | None) -> str:
    """The ranking whose tiles to look at: the candidate where it is better, else native."""
    if candidate is not None and (order == "headroom" or NATIVE not in metrics):
        return candidate
    return NATIVE if NATIVE in metrics else next(iter(metrics))


def _tiles(
    ranking: str, numbers: DecidedNumbers, view: DecidedView, without: list[str]
) -> TilesAnswer:
    k_max = view.settings.k_max
    assessable = int((view.decided & (view.group.n_tiles > 1)).sum())
    return TilesAnswer(
        answer=sentences.tiles_in_short(numbers, k_max),
        sentences=sentences.on_tiles(ranking, numbers, view, without),
        ranking=ranking,
        decisive=numbers.decisive,
        n_slides=assessable,
        share=numbers.decisive_share,
        without=without,
    )
