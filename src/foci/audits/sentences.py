"""The answers of an audit in sentences, each made from the numbers it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from foci.audits.measure import few_decided
from foci.audits.records import AxisComparison, DecidedNumbers, OrderComparison
from foci.metrics import CountQuantile
from foci.metrics.answers import MIN_CASES, Belief, BetterOrder
from foci.words import counted, decimals

if TYPE_CHECKING:
    from foci.audits.answers import DecidedView

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
    both = (comparison.sufficiency, comparison.necessity)
    return [_axis(comparison, axis) for axis in both if axis is not None]


def _axis(comparison: OrderComparison, axis: AxisComparison) -> str:
    """One axis in a sentence: who needs fewer tiles, on how many slides."""
    first, second = comparison.first, comparison.second
    if axis.result == "already minimal":
        return (
            f"{axis.axis.capitalize()}: {second} needs one tile on half of the slides, "
            f"so that {first} has no room to need fewer."
        )
    ends = "no interval"
    if axis.low is not None and axis.high is not None:
        ends = f"{_signed(axis.low)} to {_signed(axis.high)}"
    return (
        f"{axis.axis.capitalize()} ({axis.measure}): {first} is {_RESULTS[axis.result]} {second} "
        f"(net share of slides {_signed(axis.d)}, {ends}; {axis.n_differ} of "
        f"{counted(axis.n_cases, 'patient')} differ)."
    )


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
