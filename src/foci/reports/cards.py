"""The three answer cards of a report: a sentence, a number with its interval, and a badge."""

from __future__ import annotations

from dataclasses import dataclass

from foci.audits.manifest import Manifest
from foci.audits.records import AxisComparison, OrderComparison, Summary
from foci.reports.text import (
    Answer,
    ComparisonLine,
    answers,
    comparison_lines,
    fixed,
    percent,
    signed,
    signed_spread,
    spread,
)
from foci.words import counted

_WANTED = {
    "yes": "better",
    "only as a pointer": "better",
    "sufficient, not decisive": "better",
    "headroom": "better",
    "mixed": "better",
    "no better than a content-free map": "better",
    "no better than chance": "same",
    "worse than chance": "worse",
    "native is better": "worse",
}
"""The result that an answer rests on: its axis gives the number on the card."""

_FEWER = {
    "MSK": "needs fewer tiles than {second}",
    "decisive K": "has the smaller decisive set, compared with {second}",
    "deletion area": "loses more when its first tiles are deleted, compared with {second}",
}


@dataclass(frozen=True)
class AnswerCard:
    """What a card shows.

    Attributes:
        answer: Question, short answer and sentences.
        number: The number, as text; empty where nothing was measured.
        interval: Its interval or quartiles, as text; empty where there is none.
        unit: What the number counts, in plain words.
        symbol: The same in the paper's symbols, for a tooltip.
        sample: On how many slides and patients it rests.
        lines: Comparisons to draw.
        slides: Whether the slides are drawn, a dot each.
        further: A second number in words; empty if there is none.
        decided: How many slides are decided, for the card whose answer is a count.
    """

    answer: Answer
    number: str = ""
    interval: str = ""
    unit: str = ""
    symbol: str = ""
    sample: str = ""
    lines: tuple[ComparisonLine, ...] = ()
    slides: bool = False
    further: str = ""
    decided: str = ""

    @property
    def badge(self) -> str:
        """What the badge says: the short answer, or how many slides a count rests on."""
        return self.decided or self.answer.short


def answer_cards(summary: Summary, manifest: Manifest) -> tuple[AnswerCard, ...]:
    """The cards of an audit, in the prediction view."""
    found = summary.answers
    against = found.order.against_native or found.order.against_random
    on_map, on_tiles, on_order = answers(summary, manifest)
    return (
        _compared(on_map, found.map.comparison, summary.level),
        _counted(on_tiles, summary),
        _compared(on_order, against, summary.level, _saved(summary)),
    )


def deciding_axis(answer: str, comparison: OrderComparison | None) -> AxisComparison | None:
    """The axis whose number stands on the card: the one that the answer rests on."""
    if comparison is None:
        return None
    axes = [axis for axis in (comparison.necessity, comparison.sufficiency) if axis is not None]
    counting = [axis for axis in axes if axis.informative or axis.result == "worse"]
    wanted = [axis for axis in counting if axis.result == _WANTED.get(answer)]
    return next(iter([*wanted, *counting, *axes]), None)


def _compared(
    answer: Answer, comparison: OrderComparison | None, level: float, further: str = ""
) -> AnswerCard:
    axis = deciding_axis(answer.short, comparison)
    if comparison is None or axis is None:
        return AnswerCard(answer)
    ends = signed_spread(axis.low, axis.high)
    interval = f"{percent(level)} interval {ends}" if ends else "no interval"
    fewer = _FEWER[axis.measure].format(second=comparison.second)
    return AnswerCard(
        answer,
        number=signed(axis.d),
        interval=interval,
        unit=f"net share of slides on which {comparison.first} {fewer}",
        symbol=f"D on {axis.axis} ({axis.measure}): share of slides with fewer tiles under "
        f"{comparison.first}, minus share with more",
        sample=f"n = {counted(axis.n_slides, 'slide')} of {counted(axis.n_cases, 'patient')}, "
        f"{axis.n_differ} of them differ",
        lines=tuple(comparison_lines(comparison)),
        further=further,
    )


def _counted(answer: Answer, summary: Summary) -> AnswerCard:
    found = summary.answers
    decided = f"{found.n_decided} of {counted(found.n_slides, 'slide')} decided"
    patients = f"of {counted(found.n_cases, 'patient')}"
    tiles = found.tiles
    if tiles.share is None:
        sample = patients if found.n_decided else "no patient has a decided slide"
        return AnswerCard(answer, sample=sample, decided=decided)
    ends = ""
    if tiles.count is not None:
        ends = f"quartiles {fixed(tiles.count_low, 0)} and {fixed(tiles.count_high, 0)}"
    return AnswerCard(
        answer,
        number=answer.short,
        interval=ends,
        unit=f"median over slides that have any, first tiles of the {tiles.ranking} order",
        symbol="Decisive K (DK): the first K tiles suffice, and without them the decision flips",
        sample=f"n = {counted(tiles.n_slides, 'slide')} {patients}",
        slides=True,
        decided=decided,
    )


def _saved(summary: Summary) -> str:
    """Tiles saved by the candidate, the paper's SHI, in words."""
    numbers = summary.views["prediction"].get(summary.answers.order.candidate or "")
    saving = None if numbers is None else numbers.shi_native
    if saving is None or saving.estimate is None:
        return ""
    ends = spread(saving, 2)
    interval = f", {percent(summary.level)} interval {ends}" if ends else ""
    return f"Tiles saved against native (SHI): {fixed(saving.estimate, 2)}{interval}"
