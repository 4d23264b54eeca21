"""Answer the three questions of an audit, over the slides that the model has decided.

Two rankings are compared on two axes: sufficiency (MSK: do the first tiles suffice?) and necessity
(decisive K, or the deletion area where that is rare: does the decision hang on them?). A map is
believed only if it also beats maps that know nothing. Every answer comes with sentences, made from
the numbers that it stands on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np

from foci.audits.measure import (
    REFERENCES,
    MeasuredSlides,
    Threshold,
    WholeSlides,
    absolute,
    few_decided,
    relative,
)
from foci.audits.records import (
    Answers,
    AnswersAt,
    AnswersAtShare,
    AxisComparison,
    CountQuartiles,
    DecidedNumbers,
    Interval,
    MapAnswer,
    NullControl,
    OrderAnswer,
    OrderComparison,
    Question,
    TilesAnswer,
)
from foci.audits.settings import (
    EVIDENCE,
    MINIMAL,
    NATIVE,
    RANDOM,
    SELECTOR,
    AuditSettings,
)
from foci.metrics import CountQuantile, efficiencies
from foci.metrics.answers import (
    BELIEVED,
    MIN_CASES,
    Belief,
    BetterOrder,
    believable,
    better_order,
    better_than_proven,
    null_pvalue,
    sensitive,
)
from foci.metrics.compare import UNKNOWN
from foci.metrics.decisive import (
    MIN_DECISIVE,
    MIN_SHARE,
    classes_without_decisive_sets,
    necessity_axis,
)
from foci.metrics.inputs import Floats, Marks, defined_mean
from foci.metrics.stats import MIN_DRAWS, case_numbers, mean_intervals, median_interval
from foci.outputs import MEANING, SCALARS
from foci.words import counted, decimals, in_percent, p_value, signed

CANDIDATES = (MINIMAL, EVIDENCE, SELECTOR)
"""Rankings that may be a better order where no readout was chosen, the first that was run."""

TIED_SLIDES = 0.5
"""Share of slides with tied first tiles from which a map has no order to judge."""

_BELIEFS: Mapping[Belief, str] = {
    "yes": "The map's order beats random orders on every axis that can tell them apart.",
    "only as a pointer": "The decision hangs on the tiles at the top of the map, but revealing "
    "them in the map's order recovers the decision no faster than random orders do.",
    "sufficient, not decisive": "The first tiles of the map recover the decision faster than "
    "random tiles, but without them the decision changes no sooner.",
    "no better than a content-free map": "The map beats random orders, but so do maps that know "
    "nothing: any order that takes one kind of tissue first does.",
    "no better than chance": "Random orders do as well as the map, or nearly so.",
    "worse than chance": "Random orders do better than the map.",
    "inconclusive": "The data do not settle whether the map beats random orders.",
}
_ORDERS: Mapping[BetterOrder, str] = {
    "headroom": "There is a better order than the map's.",
    "mixed": "The candidate is better on one axis and worse on the other.",
    "native is better": "The map's order is better than the candidate.",
    "native suffices": "The candidate is not better than the map's order by a size that matters, "
    "and the map can be believed.",
    "no better order found": "The candidate is not better than the map's order by a size that "
    "matters, and the map is not shown to beat chance.",
    "inconclusive": "The data do not settle whether the candidate is better.",
}
_PROVEN_ORDERS: Mapping[BetterOrder, str] = {
    "headroom": "The map's deciding sets are larger than they have to be.",
    "native suffices": "The map's deciding sets are close to the smallest possible.",
    "inconclusive": "The data do not settle whether the map's deciding sets are close to the "
    "smallest possible.",
}
_SINGLE_TILES = "Every decided slide has a single tile: all orders are the same one."
_RESULTS = {
    "better": "better",
    "worse": "worse",
    "same": "no difference",
    "unclear": "not distinguishable",
}
_MEASURES = {
    "MSK": "tiles that are enough (MSK)",
    "decisive K": "deciding tiles (decisive K)",
    "deletion area": "confidence lost without the first tiles (deletion area)",
}


@dataclass(frozen=True, eq=False)
class DecidedView:
    """The decided slides of the prediction view at one threshold."""

    measured: MeasuredSlides
    settings: AuditSettings
    threshold: Threshold

    @property
    def rankings(self) -> tuple[str, ...]:
        """Names of the rankings that were run."""
        return self.measured.curves.rankings

    @property
    def map(self) -> str:
        """Name of the map."""
        return self.settings.map_name

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
        """``[S]`` slides on which necessity is compared: of a class that has decisive sets.

        Slides of which it is proven that no set decides them are left out.
        """
        slides = self.measured.slides
        return self.longer & ~slides.without_set & ~np.isin(slides.predictions, self.without)

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

    @property
    def tied(self) -> bool:
        """Whether most of the map's first tiles are tied on most slides: it has no order."""
        share = self.measured.tied.get(self.map)
        return share is not None and share > TIED_SLIDES

    def counts(self, ranking: str) -> tuple[Floats, Floats | None]:
        """``[R, S]`` MSK and decisive K at the threshold; None where deletion was not measured."""
        own = self.measured.of(ranking)
        both = own.with_decisive
        decisive = None if both is None else both.at("decisive_at", self.threshold)
        return own.at("msk_at", self.threshold), decisive

    @cached_property
    def exact(self) -> bool:
        """Whether the smallest deciding set of every decided slide is proven."""
        return bool(self.longer.any() and self.measured.slides.exact[self.longer].all())

    def efficiency(self, ranking: str) -> dict[str, Any]:
        """See :func:`efficiency_of`."""
        counts = self.counts(ranking)[1]
        if counts is None:
            return {}
        return efficiency_of(counts, self.measured.slides, self.decided, self.settings)

    def compare(self, first: str, second: str) -> OrderComparison | None:
        """One ranking against another on both axes; None where one was not run."""
        if first not in self.rankings or second not in self.rankings or not self.decided.any():
            return None
        a, b = (self.counts(name)[0][:, self.decided] for name in (first, second))
        sufficiency = AxisComparison.of("sufficiency", "MSK", a, b, **self._patients(self.decided))
        necessity = self._necessity(first, second)
        return OrderComparison(
            first=first, second=second, sufficiency=sufficiency, necessity=necessity
        )

    def _necessity(self, first: str, second: str) -> AxisComparison | None:
        """Decisive K where enough slides have one, else the deletion area.

        Decisive K runs over the slides that can be decided: those with a deciding set by
        proof, and of those of which nothing is proven the ones on which the map, evidence, a
        random order or one of the two finds one.
        """
        kept = self.assessable
        if not kept.any():
            return None
        (_, a), (_, b) = self.counts(first), self.counts(second)
        if (
            a is not None
            and b is not None
            and necessity_axis(a[:, kept], b[:, kept]) == "decisive K"
        ):
            slides = self.measured.slides
            names = {self.map, EVIDENCE, RANDOM, first, second} & set(self.rankings)
            tables = [table for name in names if (table := self.counts(name)[1]) is not None]
            found = np.any([(~np.isnan(table)).any(axis=0) for table in tables], axis=0)
            found |= slides.proven & (slides.k_star <= self.settings.last_deletion(slides.n_tiles))
            kept = kept & found
            return AxisComparison.of(
                "necessity", "decisive K", a[:, kept], b[:, kept], **self._patients(kept)
            )
        x, y = (self.measured.of(name).with_deletions.area[:, kept] for name in (first, second))
        made = AxisComparison.of("necessity", "deletion area", x, y, **self._patients(kept))
        return made if made.n_slides else None

    @cached_property
    def _decidable(self) -> Marks:
        """``[S]`` slides on which evidence finds deciding tiles among the first quarter.

        All where it finds few. Slides that hang on more tiles, or on none, would only dilute what
        content-free maps are compared by.
        Slides that are proven to hang on none are left out in any case.
        """
        counts = self.counts(EVIDENCE)[1] if EVIDENCE in self.rankings else None
        possible = self.longer & ~self.measured.slides.without_set
        if counts is None:
            return possible
        found = possible & (counts <= self.measured.slides.n_tiles / 4).any(axis=0)
        return found if found.sum() >= MIN_DECISIVE * possible.sum() else possible

    def against_nulls(self, ranking: str) -> NullControl | None:
        """A ranking beside the content-free maps; None where there are none to compare with."""
        drawn = self.measured.null_map_wins
        if drawn is None or not {ranking, RANDOM} <= set(self.rankings):
            return None
        own = self.measured.null_wins(ranking)
        known = ~np.isnan(own) & (drawn != UNKNOWN).all(axis=0)
        kept = np.flatnonzero(self._decidable & known)
        if not len(kept):
            return None
        names = [self.measured.slides.cases[row] for row in kept]
        case = case_numbers(names, len(names))[1]
        sizes = np.bincount(case)
        n_orders = len(self.measured.of(RANDOM).with_deletions.null_area)
        d, *shares = (
            float((np.bincount(case, weights=wins) / sizes).mean())
            for wins in (own[kept], *(row[kept] / n_orders for row in drawn))
        )
        n_maps = len(shares) - len(REFERENCES)
        pvalue = null_pvalue(d, shares[:n_maps])
        return NullControl(
            ranking=ranking,
            d=d,
            n_maps=n_maps,
            beaten=n_maps + 1 - round(pvalue * (n_maps + 1)),
            pvalue=pvalue,
            best=max(shares[:n_maps]),
            n_slides=len(kept),
            n_cases=len(set(names)),
            sampled=len(kept) < int(self._decidable.sum()),
            references=dict(zip(REFERENCES, shares[n_maps:], strict=True)),
        )

    def _patients(self, chosen: Marks) -> dict[str, Any]:
        """Patients of the chosen slides, and how they are resampled."""
        return {"cases": self.measured.slides.cases_of(chosen), **self.settings.drawn}


def efficiency_of(
    counts: Floats, slides: WholeSlides, chosen: Marks, settings: AuditSettings
) -> dict[str, Any]:
    """The efficiency fields of :class:`DecidedNumbers`, of decisive K ``[R, S]`` on some slides.

    A slide with a measured set below the minimum is left out: rounding flipped a near-tie.
    """
    counts, least = counts[:, chosen], slides.k_star[chosen]
    least = np.where((counts < least).any(axis=0), np.nan, least)
    if np.isnan(least).all():
        return {}
    last = settings.last_deletion(slides.n_tiles)[chosen]
    beyond = least > last
    within = np.where(beyond, np.nan, least)
    ratios = np.stack([efficiencies(within, row, int(last.max())) for row in counts]).mean(axis=0)
    kept, over = ~np.isnan(ratios), (counts - least)[~np.isnan(counts - least)]
    fields: dict[str, Any] = {
        "efficiency_n": int(kept.sum()), "efficiency_beyond": int(beyond.sum()),
    }  # fmt: skip
    if over.size:
        fields |= {"excess": float(over.mean()), "excess_max": float(over.max())}
    if kept.any():
        cases = [case for case, one in zip(slides.cases_of(chosen), kept, strict=True) if one]
        found = mean_intervals(ratios[kept, None], cases, **settings.drawn)[0]
        fields["efficiency"] = Interval.model_validate(found)
    return fields


def answer_questions(
    measured: MeasuredSlides,
    classes: Sequence[str],
    settings: AuditSettings,
    numbers: Mapping[str, DecidedNumbers],
) -> Answers:
    """Can I believe the map? How many tiles does the decision hang on? Is there a better order?

    ``numbers`` are those of every ranking over decided slides.
    """
    slides, rankings = measured.slides, measured.curves.rankings
    view = DecidedView(measured, settings, Threshold(settings.kappa))
    wanted = (settings.readout, *CANDIDATES)
    candidate = next((name for name in wanted if name in rankings), None)
    belief, against_chance, null = _belief(view)
    order, against_native, against_random, own_null = _order(view, candidate, belief)
    # the ranking whose tiles to look at: the candidate where it is better, else the map
    in_use = view.map if view.map in rankings else candidate or rankings[0]
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
    judged = numbers.get(view.map)
    shares = {} if judged is None else {c: judged.per_class[c].decisive_share for c in classes}
    map_answer = MapAnswer(
        answer=belief,
        sentences=[],
        ranking=view.map,
        comparison=against_chance,
        null=null,
        only=_only_in(belief, shares),
        tied=measured.tied.get(view.map),
    )
    order_answer = OrderAnswer(
        answer=order,
        sentences=[],
        candidate=candidate,
        against_native=against_native,
        against_random=against_random,
        null=own_null,
        evidence=None if candidate == EVIDENCE else view.compare(EVIDENCE, view.map),
        selector=view.compare(SELECTOR, EVIDENCE),
        **_efficiency(view),
    )
    return Answers(
        n_slides=len(slides),
        n_decided=view.n_decided,
        n_cases=view.n_cases,
        map=map_answer.model_copy(update={"sentences": on_map(map_answer, view)}),
        tiles=_tiles(in_use, view, numbers[in_use], [classes[index] for index in view.without]),
        order=order_answer.model_copy(
            update={"sentences": on_order(order_answer, map_answer, view)}
        ),
        sensitivity=repeated,
        sensitive=[
            question
            for question in get_args(Question)
            if sensitive({one.kappa: getattr(one, question) for one in repeated})
        ],
        relative=[
            _at_share(DecidedView(measured, settings, threshold), candidate, in_use, classes)
            for threshold in relative(slides, settings)
        ],
    )


def _belief(view: DecidedView) -> tuple[Belief, OrderComparison | None, NullControl | None]:
    found, null = view.compare(view.map, RANDOM), view.against_nulls(view.map)
    if found is None or not view.has_intervals:
        return "not assessable", found, null
    answer = believable(
        *found.evidence,
        null_p=None if null is None else null.pvalue,
        n_cases=view.n_cases,
        tied=view.tied,
    )
    return answer, found, null


def _order(
    view: DecidedView, candidate: str | None, belief: Belief
) -> tuple[BetterOrder, OrderComparison | None, OrderComparison | None, NullControl | None]:
    if candidate is None:
        return "not assessable", None, None, None
    native, chance = view.compare(candidate, view.map), view.compare(candidate, RANDOM)
    null = view.against_nulls(candidate)
    if native is None or not view.has_intervals:
        return "not assessable", native, chance, null
    if view.exact:
        ends = view.efficiency(view.map).get("efficiency")
        low, high = (None, None) if ends is None else (ends.low, ends.high)
        return better_than_proven(low, high, view.n_cases), native, chance, null
    over_random = (None, None) if chance is None else chance.evidence
    answer = better_order(
        *native.evidence,
        sufficiency_over_random=over_random[0],
        necessity_over_random=over_random[1],
        null_p=None if null is None else null.pvalue,
        belief=belief,
        n_cases=view.n_cases,
    )
    return answer, native, chance, null


def _efficiency(view: DecidedView) -> dict[str, Any]:
    """The efficiency fields of :class:`OrderAnswer`: those of the map, where they answer."""
    if not view.exact or view.map not in view.rankings:
        return {}
    found = view.efficiency(view.map)
    return {name: found[name] for name in OrderAnswer.model_fields if name in found}


def _both(view: DecidedView, candidate: str | None) -> tuple[Belief, BetterOrder]:
    """The answers on the map and on a better order."""
    belief = _belief(view)[0]
    return belief, _order(view, candidate, belief)[0]


def _only_in(belief: Belief, shares: Mapping[str, float | None]) -> list[str]:
    """Classes in which a map that is believed finds deciding tiles, if not in all of them.

    Args:
        belief: The answer.
        shares: Of the slides that the model calls so, how many have deciding tiles; by class.
    """
    known = {name: share for name, share in shares.items() if share is not None}
    found = [name for name, share in known.items() if share >= MIN_SHARE]
    return found if belief in BELIEVED and 0 < len(found) < len(known) else []


def _tiles(
    ranking: str, view: DecidedView, numbers: DecidedNumbers, without: list[str]
) -> TilesAnswer:
    """How many tiles the decision hangs on, under the ranking in use."""
    decisive, slides = view.counts(ranking)[1], view.measured.slides
    answer = TilesAnswer(
        answer="not assessable", sentences=[], ranking=ranking, n_slides=int(view.longer.sum()),
        n_found=None, share=None, count=None, count_low=None, count_high=None, of_slide=None,
        without=without,
        proven_none=int(slides.without_set[view.longer].sum()) if slides.proven.any() else None,
        minimum=_median_minimum(slides.k_star[view.longer]) if view.exact else None,
    )  # fmt: skip
    if decisive is not None and view.longer.any():
        counts, sizes = decisive[:, view.longer], slides.n_tiles[view.longer]
        cases = slides.cases_of(view.longer)
        how = view.settings.drawn
        found = (~np.isnan(counts)).mean(axis=0)
        share, (names, patients) = float(found.mean()), case_numbers(cases, len(cases))
        low = high = math.nan
        if len(names) > 1:
            # two pseudo-patients, with and without: a share of 100 % is not known to be 100 %
            pseudo = np.append(patients, (len(names), len(names) + 1))
            drawn = mean_intervals(np.append(found, (0.0, 1.0))[:, None], pseudo, **how)[0]
            low, high = drawn.low, drawn.high
        update: dict[str, Any] = {
            "share": Interval(estimate=share, low=low, high=high),
            "n_found": float(found.sum()),
            "answer": "none found",
        }
        has = found > 0
        if has.any():
            number = defined_mean(counts[:, has], axis=0)
            own = median_interval(number, [c for c, k in zip(cases, has, strict=True) if k], **how)
            quartiles = np.quantile(number, [0.25, 0.75])
            update |= {
                "count": Interval.model_validate(own),
                "count_low": float(quartiles[0]),
                "count_high": float(quartiles[1]),
                "of_slide": float(np.median(number / sizes[has])),
            }
        answer = answer.model_copy(update=update)
        answer = answer.model_copy(update={"answer": tiles_in_short(answer)})
    return answer.model_copy(update={"sentences": on_tiles(answer, numbers, view)})


def _median_minimum(k_star: Floats) -> float | None:
    return None if np.isnan(k_star).all() else float(np.nanmedian(k_star))


def _at_share(
    view: DecidedView, candidate: str | None, in_use: str, classes: Sequence[str]
) -> AnswersAtShare:
    """Answers and counts over all slides, at a share of each slide's own confidence."""
    belief, order = _both(view, candidate)
    slides, k_max = view.measured.slides, view.settings.k_max
    sizes, mine = slides.n_tiles, None
    if view.map in view.rankings:
        mine = view.counts(view.map)[1]
    shares: dict[str, float | None] = {}
    if mine is not None:
        for index, name in enumerate(classes):
            called = (slides.predictions == index) & (sizes > 1)
            shares[name] = float((~np.isnan(mine[:, called])).mean()) if called.any() else None
    msk, decisive = view.counts(in_use)
    quartiles = None
    if decisive is not None:
        table = view.measured.of(in_use).with_decisive
        left = np.zeros(decisive.shape, bool) if table is None else ~table.ends
        quartiles = CountQuartiles.over(decisive[:, sizes > 1], left[:, sizes > 1])
    return AnswersAtShare(
        share=view.threshold.value,
        n_slides=len(sizes),
        n_cases=view.n_cases,
        map=belief,
        only=_only_in(belief, shares),
        order=order,
        ranking=in_use,
        msk=CountQuartiles.over(msk, np.broadcast_to(sizes > k_max, msk.shape)),
        decisive=quartiles,
    )


# The answers in sentences


def on_map(found: MapAnswer, view: DecidedView) -> list[str]:
    """Why the map can, or cannot, be believed."""
    if found.comparison is None:
        missing = [name for name in (view.map, RANDOM) if name not in view.rankings]
        if missing:
            run = "was" if len(missing) == 1 else "were"
            return [f"{' and '.join(missing)} {run} not run: the map was not compared with chance."]
        return [_not_assessable(view)]
    slides = f"{counted(view.n_decided, 'decided slide')} of {counted(view.n_cases, 'patient')}"
    opening = _BELIEFS.get(found.answer) or _not_assessable(view)
    lines = [opening if found.answer == "not assessable" else f"{opening} ({slides}.)"]
    if found.answer == "no better than chance":
        ends = [axis.high for axis in found.comparison.axes if axis.informative]
        most = max(end for end in ends if end is not None)
        lines.append(f"Its net share of slides over random orders is at most {signed(most)}.")
    if found.only:
        others = "the other class" if len(view.measured.slides.full[0]) == 2 else "other classes"
        names = " and ".join(found.only)
        lines.append(f"This holds for slides predicted {names}; in {others} it finds no deciding "
                     "tiles.")  # fmt: skip
    lines += axis_sentences(found.comparison)
    if found.answer != "not assessable":
        lines += null_sentences(found.null, view)
    return lines


def on_order(found: OrderAnswer, belief: MapAnswer, view: DecidedView) -> list[str]:
    """Why there is, or is not, a better order."""
    native, chance = found.against_native, found.against_random
    if native is None:
        if not view.n_decided:
            return [_not_assessable(view)]
        against_chance = [] if chance is None else axis_sentences(chance)
        return ["No candidate was compared with the map's order.", *against_chance]
    if view.exact:
        return _proven(found, view)
    lines = [_ORDERS.get(found.answer) or _not_assessable(view), *axis_sentences(native)]
    if chance is not None and found.answer in ("headroom", "inconclusive"):
        lines += [*axis_sentences(chance), *null_sentences(found.null, view)]
    if found.evidence is not None:
        lines += axis_sentences(found.evidence)
    if found.selector is not None:
        lines.append(_training(found.selector))
    measures = [
        compared.necessity.measure
        for compared in (belief.comparison, native)
        if compared is not None and compared.necessity is not None
    ]
    if len(set(measures)) == 2:
        lines.append(
            f"The answer on the map rests on {_MEASURES[measures[0]]}, this one on "
            f"{_MEASURES[measures[1]]}."
        )
    return lines


def _proven(found: OrderAnswer, view: DecidedView) -> list[str]:
    """How near the map comes to the best order, where that is proven."""
    lines = [_PROVEN_ORDERS.get(found.answer) or _not_assessable(view)]
    own, n = found.efficiency, found.efficiency_n
    if own is None or own.estimate is None:
        lines = ["No decided slide has a deciding set within the counts that were tried, proven."]
    else:
        ends = _ends(own.low, own.high, lambda end: decimals(end, 2))
        lines.append(
            f"Efficiency of {view.map}: {decimals(own.estimate, 2)}{ends}, the proven minimum of "
            f"deciding tiles over those it needs, mean of {counted(n, 'slide')} (0 where it finds "
            "none)."
        )
    if found.efficiency_beyond:
        slides = counted(found.efficiency_beyond, "slide")
        lines.append(f"{slides} with a minimum beyond {view.settings.k_max} tiles left out.")
    if MINIMAL in view.rankings:
        lines.append("No order can do better than minimal, proven.")
    if view.map == NATIVE and own is not None and (own.estimate or 0.0) < 1:
        lines.append(
            "An attention map does not know the class, the minimum does: part of the gap is that."
        )
    return [*lines, "Does training pay? It cannot: proven."]


def tiles_in_short(found: TilesAnswer) -> str:
    """The number of deciding tiles in a few words, with the slides that have any."""
    if found.count is None or found.count.estimate is None:
        return found.answer
    n_found = decimals(found.n_found or 0.0, 1).removesuffix(".0")
    number = _tile_count(found.count.estimate)
    return f"{number}, on {n_found} of {counted(found.n_slides, 'slide')}"


def on_tiles(found: TilesAnswer, numbers: DecidedNumbers, view: DecidedView) -> list[str]:
    """How many tiles the decision hangs on, under which order, on how many slides."""
    k_max, n = view.settings.k_max, len(view.measured.slides)
    undecided, kappa = n - view.n_decided, view.threshold.value
    lines = []
    few = few_decided(view.measured.slides, view.settings)
    if few:
        of = f"{undecided} of {counted(n, 'slide')}"
        unsure = f"The model is less than {kappa:g} sure of {of}"
        if view.settings.output in SCALARS:
            unsure = f"The output is clear on neither side of the cut on {of}"
        lines.append(f"{unsure}: read the answers over all slides beside these.")
    if not view.n_decided:
        return [*lines, _not_assessable(view)]
    if found.share is None or numbers.msk is None:
        why = "No decided slide has deletion curves that could tell."
        return [*lines, _SINGLE_TILES if view.only_single_tiles else why]
    ends = _ends(found.share.low, found.share.high, in_percent)
    lines.append(
        f"Under the {found.ranking} order {in_percent(found.share.estimate or 0.0)} of the "
        f"{counted(found.n_slides, 'decided slide')} have deciding tiles{ends}: alone they give "
        "the decision, and without them it changes."
    )
    if view.settings.output in MEANING:
        lines.append(MEANING[view.settings.output])
    if found.count is not None and found.count.estimate is not None:
        bound = "" if numbers.exact else " (upper bounds: not every count was tried)"
        low, high = (decimals(end or 0.0, 0) for end in (found.count_low, found.count_high))
        ends = _ends(found.count.low, found.count.high, lambda end: decimals(end, 0))
        lines.append(
            f"On those the median is {_tile_count(found.count.estimate)}{ends}, "
            f"{in_percent(found.of_slide or 0.0)} of the slide's tiles; quartiles {low} and "
            f"{high}{bound}."
        )
    lines.append(
        f"{in_words(numbers.msk.median, k_max)} would already suffice on the median slide (MSK)."
        if numbers.msk.median.missing is None
        else "On the median slide no revealed count suffices (MSK)."
    )
    if undecided and not few:
        what = f"{counted(undecided, 'undecided slide')} (whole-slide confidence below {kappa:g})"
        lines.append(f"{what} {'is' if undecided == 1 else 'are'} excluded.")
    if view.n_cases == 1:
        lines.append("Based on one patient; do not generalise.")
    if found.minimum is not None and found.count is not None:
        lines.append(f"The proven minimum is {_tile_count(found.minimum)} on the median slide.")
    if found.proven_none:
        slides = counted(found.n_slides, "decided slide")
        lines.append(
            f"On {found.proven_none} of {slides} it is proven that no set of tiles decides: "
            "whatever is removed, the decision stays."
        )
    if found.without:
        lines.append(f"No deciding tiles found: {', '.join(found.without)}.")
    return lines


def _tile_count(count: float) -> str:
    return "1 tile" if count == 1 else f"{float(decimals(count, 1)):,} tiles".replace(".0 ", " ")


def _ends(low: float | None, high: float | None, form: Callable[[float], str]) -> str:
    return "" if low is None or high is None else f" ({form(low)} to {form(high)})"


def in_words(count: CountQuantile, most: int | str) -> str:
    """A count for people: a number, more than the most that was tried, or none.

    >>> in_words(CountQuantile(12.0, None), 256), in_words(CountQuantile(2.5, None), 256)
    ('12', '2.5')
    >>> in_words(CountQuantile(None, "beyond"), 256)
    'more than 256'
    """
    if count.value is None:
        return f"more than {most}" if count.missing == "beyond" else "none"
    return decimals(count.value, 1 if count.value < 100 else 0).removesuffix(".0")


def _not_assessable(view: DecidedView) -> str:
    """Why a question has no answer."""
    if not view.n_decided:
        return "The model has decided no slide: there is no decision to recover."
    if view.only_single_tiles:
        return _SINGLE_TILES
    if view.tied:
        share = in_percent(view.measured.tied[view.map])
        return f"The map's first tiles are tied on {share} of the slides: it gives no order."
    if view.n_cases < MIN_CASES:
        patients = counted(view.n_cases, "patient")
        have = "has" if view.n_cases == 1 else "have"
        what = f"Only {patients} {have} slides that the model is sure of"
        return f"{what}: at least {MIN_CASES} are needed."
    if not view.has_intervals:
        draws = counted(view.settings.n_boot, "bootstrap draw")
        return f"{draws} cannot give an interval: raise n_boot."
    return "No axis can tell these orders apart."


def axis_sentences(comparison: OrderComparison) -> list[str]:
    """Each axis in a sentence: who is ahead, on how many slides, and by how much."""
    first, second = comparison.first, comparison.second
    lines = []
    for axis in comparison.axes:
        name = axis.axis.capitalize()
        if not axis.informative and axis.result != "worse":
            lines.append(
                f"{name}: not informative, {second} already needs one tile on half of the slides."
            )
            continue
        ends = "no interval"
        if axis.low is not None and axis.high is not None:
            ends = f"{signed(axis.low)} to {signed(axis.high)}"
        lines.append(
            f"{name}, {_MEASURES[axis.measure]}: {first} against {second}, "
            f"{_RESULTS[axis.result]}. Ahead on {counted(axis.wins, 'slide')}, behind on "
            f"{axis.losses}, equal on {axis.ties} ({counted(axis.n_cases, 'patient')}: "
            f"{axis.case_wins} ahead, {axis.case_losses} behind); {_medians(axis)}net share "
            f"{signed(axis.d)} ({ends}; {p_value(axis.pvalue)})."
        )
    return lines


def _medians(axis: AxisComparison) -> str:
    """Both medians and their ratio, or the shares of slides where half have none."""
    digits = 3 if axis.measure == "deletion area" else 1

    def number(value: float | None) -> str:
        return "none" if value is None else decimals(value, digits).removesuffix(".0")

    if axis.n_slides == 0:
        return ""
    ratio = "" if axis.ratio is None else f", ratio {decimals(axis.ratio, 2)}"
    return f"medians {number(axis.first)} and {number(axis.second)}{ratio}; "


def null_sentences(found: NullControl | None, view: DecidedView) -> list[str]:
    """How a ranking does beside maps that know nothing."""
    if found is None:
        few = "No slide has enough tiles to compare with content-free maps"
        why = "No content-free maps were run" if view.measured.null_map_wins is None else few
        return [f"{why}, so that no map can be believed."]
    sampled = f" on a sample of {counted(found.n_slides, 'slide')}" if found.sampled else ""
    lines = [
        f"Beside maps that know nothing (random directions in feature space){sampled}, "
        f"{found.ranking} does better than {found.beaten} of {found.n_maps}, by the probability "
        f"lost without its first tiles (p = {decimals(found.pvalue, 3)})."
    ]
    rivals = [name for name, d in found.references.items() if d is not None and d >= found.d]
    if rivals and found.d > 0:
        lines.append(f"Even sorting by {rivals[0]} does as well.")
    return lines


def _training(selector: OrderComparison) -> str:
    """Whether a trained selector adds anything to the training-free ranking."""
    axes = [axis.evidence for axis in selector.axes]
    pays = any(axis.clearly_better and axis.sized for axis in axes)
    if any(axis.clearly_worse for axis in axes):
        where = ", on one axis, and better on the other" if pays else ""
        return f"A trained order does not pay here: it is worse than {selector.second}{where}."
    if pays:
        return f"A trained order pays here: it beats {selector.second}."
    return f"A trained order is not shown to add anything to {selector.second}."
