"""Schema of the answers in ``summary.json``: each with its comparisons, intervals and counts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foci.audits.records import AxisComparison, Number, Record
from foci.metrics.answers import Belief, BetterOrder

Question = Literal["map", "order"]


class CountQuantile(Record):
    """A quantile of tile counts in which a missing count is infinite.

    Attributes:
        value: The count; None where the quantile falls on slides without one.
        missing: Then, whether counts go on beyond K_max or there is none at all.
    """

    value: Number
    missing: Literal["beyond", "none"] | None = None


class CountQuartiles(Record):
    """Quartiles of tile counts over slides; missing counts are infinite."""

    low: CountQuantile
    median: CountQuantile
    high: CountQuantile


class OrderComparison(Record):
    """One ranking against another, on both axes.

    Attributes:
        first: The ranking that is judged.
        second: The ranking it is judged against.
        sufficiency: None where it cannot be compared.
        necessity: None where it cannot be compared.
        ratio: Geometric mean of MSK under the first over that under the second, on the slides
            that both reach; the size of a difference, never part of a rule.
        n_ratio: How many slides those are.
    """

    first: str
    second: str
    sufficiency: AxisComparison | None
    necessity: AxisComparison | None
    ratio: Number
    n_ratio: int


class MapAnswer(Record):
    """Can I believe the map? Native against random orders."""

    answer: Belief
    sentences: list[str]
    comparison: OrderComparison | None


class TilesAnswer(Record):
    """How many tiles does the decision hang on? Decisive K under the ranking in use.

    Attributes:
        answer: The median in words.
        sentences: What it rests on.
        ranking: The ranking in use.
        decisive: Quartiles of decisive K; None where it was not measured.
        n_slides: Decided slides of two or more tiles.
        share: Share of them that have a decisive K.
        without: Classes without decisive sets within K_max.
    """

    answer: str
    sentences: list[str]
    ranking: str
    decisive: CountQuartiles | None
    n_slides: int
    share: Number
    without: list[str]


class OrderAnswer(Record):
    """Is there a better order? The candidate against native, and against random orders.

    Attributes:
        candidate: The ranking that is tried; None without one.
        against_native: None where native was not run.
        against_random: None where random orders were not run.
        selector: The trained selector against ``evidence``, where both were run.
    """

    answer: BetterOrder
    sentences: list[str]
    candidate: str | None
    against_native: OrderComparison | None
    against_random: OrderComparison | None
    selector: OrderComparison | None


class AnswersAt(Record):
    """The answers at another threshold, each with its own decided slides."""

    kappa: float
    n_decided: int
    n_cases: int
    map: Belief
    order: BetterOrder


class AnswersAtShare(Record):
    """The answers at a share of each slide's own full-bag confidence, on all slides.

    Attributes:
        share: A tile set suffices where it gives this share of the full bag's probability.
        n_slides: All audited slides.
        n_cases: Their patients.
        map: Can I believe the map?
        order: Is there a better order?
        ranking: The ranking in use, as in the answer on tiles.
        msk: Quartiles of its MSK.
        decisive: Quartiles of its decisive K; None where it was not measured.
    """

    share: float
    n_slides: int
    n_cases: int
    map: Belief
    order: BetterOrder
    ranking: str
    msk: CountQuartiles | None
    decisive: CountQuartiles | None


class Answers(Record):
    """The three answers of an audit, all in the prediction view over decided slides.

    Attributes:
        n_slides: Audited slides.
        n_decided: Those of which the model itself is at least kappa sure.
        n_cases: Patients of the decided slides.
        map: Can I believe the map?
        tiles: How many tiles does the decision hang on?
        order: Is there a better order?
        sensitivity: The same at other thresholds.
        sensitive: Questions with two different conclusive answers among the thresholds.
        relative: The same relative to each slide's own confidence, where it was asked for or
            fewer than a third of the slides are decided.
    """

    n_slides: int
    n_decided: int
    n_cases: int
    map: MapAnswer
    tiles: TilesAnswer
    order: OrderAnswer
    sensitivity: list[AnswersAt]
    sensitive: list[Question]
    relative: list[AnswersAtShare] = Field(default_factory=list)

    @property
    def in_short(self) -> dict[str, str]:
        """The answers by question, in a few words."""
        return {"map": self.map.answer, "tiles": self.tiles.answer, "order": self.order.answer}
