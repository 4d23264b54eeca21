"""The three answers of an audit as the page shows them: cards, comparisons, thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from foci.audits.analysis.answers.record import (
    Answers,
    OrderComparison,
)
from foci.audits.analysis.summary import Summary
from foci.audits.folder.manifest import Manifest
from foci.audits.records import AxisComparison, Measure
from foci.reports.text.wording import signed, signed_spread

Tone = Literal["good", "part", "bad", "none"]

_TONES: dict[str, Tone] = {
    "yes": "good",
    "headroom": "good",
    "native suffices": "good",
    "only as a pointer": "part",
    "sufficient, not decisive": "part",
    "mixed": "part",
    "no better order found": "part",
    "no better than chance": "bad",
    "native is better": "bad",
}
PLAIN_AXES: dict[Measure, str] = {
    "MSK": "tiles needed",
    "decisive K": "tiles the decision hangs on",
    "deletion area": "loss when deleted",
}
"""What an axis compares, in plain words."""

MAP, TILES, ORDER = (
    "Can I believe the map?",
    "How many tiles does the decision hang on?",
    "Is there a better order?",
)


@dataclass(frozen=True)
class Answer:
    """A question, a short answer, and the sentences that support it."""

    question: str
    short: str
    sentences: tuple[str, ...]

    @property
    def tone(self) -> Tone:
        """How the answer is coloured."""
        return tone_of(self.short)


@dataclass(frozen=True)
class ComparisonLine:
    """One axis of one comparison, for the table of evidence."""

    rankings: str
    axis: str
    plain: str
    interval: AxisComparison
    text: str


def tone_of(answer: str | None) -> Tone:
    """Colour of an answer: good, partly good, bad, or none where it decides nothing.

    >>> tone_of("headroom"), tone_of("inconclusive"), tone_of(None)
    ('good', 'none', 'none')
    """
    return _TONES.get(answer or "", "none")


def answers(summary: Summary, manifest: Manifest) -> tuple[Answer, ...]:
    """The three answers, in the prediction view."""
    told = summary.answers
    stand_in = ("This model has no attention of its own: its map is a stand-in.",)
    proxy = stand_in if manifest.backbone.score == "proxy" and not manifest.settings.map else ()
    return (
        Answer(MAP, told.map.answer, (*told.map.sentences, *proxy)),
        Answer(TILES, told.tiles.answer, tuple(told.tiles.sentences)),
        Answer(ORDER, told.order.answer, tuple(told.order.sentences)),
    )


def evidence(told: Answers) -> tuple[ComparisonLine, ...]:
    """Every comparison that an answer rests on, one line per axis."""
    order = told.order
    compared = (
        told.map.comparison, order.against_native, order.against_random, order.selector,
    )  # fmt: skip
    return tuple(line for one in compared if one is not None for line in comparison_lines(one))


def _net_share(axis: AxisComparison) -> str:
    ends = signed_spread(axis.low, axis.high)
    return signed(axis.d) + (f" ({ends})" if ends else "")


def comparison_lines(comparison: OrderComparison) -> Iterator[ComparisonLine]:
    """The axes of one comparison, sufficiency first."""
    for axis in (comparison.sufficiency, comparison.necessity):
        if axis is not None:
            yield comparison_line(comparison.first, comparison.second, axis)


def comparison_line(first: str, second: str, axis: AxisComparison) -> ComparisonLine:
    """One ranking against another on one axis."""
    return ComparisonLine(
        rankings=f"{first} against {second}",
        axis=f"{axis.axis} ({axis.measure})",
        plain=PLAIN_AXES[axis.measure],
        interval=axis,
        text=_net_share(axis),
    )
