"""Base class and building blocks of the typed records in an audit folder."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from foci.metrics.compare import OrderComparison
from foci.words import counted


class Record(BaseModel):
    """Frozen pydantic model; entries that it does not name are ignored."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", json_schema_serialization_defaults_required=True
    )


def plain(value: Any) -> Any:
    """Convert NumPy arrays and scalars to Python values; NaN and infinity become None.

    >>> plain(np.array([1.0, np.nan])), plain(float("inf")), plain(3)
    ([1.0, None], None, 3)
    """
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


Number = Annotated[float | None, BeforeValidator(plain)]
"""A float; None where it is not defined."""

Defined = Annotated[float, BeforeValidator(plain)]
"""A float that is always defined."""

Numbers = Annotated[list[float | None], BeforeValidator(plain)]
"""A list of floats; None where one is not defined."""

Counts = Annotated[list[int], BeforeValidator(plain)]
"""A list of whole numbers."""


AlarmKind = Literal[
    "class order",
    "other encoder",
    "mixed encoders",
    "below chance",
    "below test figure",
    "constant answer",
    "single class",
    "training slides",
    "patient overlap",
    "duplicate bags",
    "zero tiles",
]
"""What an alarm is about, in the order in which alarms are listed."""


class Alarm(Record):
    """A reason why the numbers of an audit may not mean what they seem to mean.

    Attributes:
        kind: What it is about.
        sentence: What was found and what to do, in one plain sentence or two.
        numbers: The figures behind it, by name.
        slides: The slides concerned, where it is about some of them.
    """

    kind: AlarmKind
    sentence: str
    numbers: dict[str, float] = Field(default_factory=dict)
    slides: list[str] = Field(default_factory=list)


class Interval(Record):
    """An estimate with its bootstrap interval over patients; None where it is not defined."""

    estimate: Number
    low: Number
    high: Number


class Mean(Interval):
    """A mean over all slides, always defined; its interval needs two patients and two draws."""

    estimate: Defined


Axis = Literal["sufficiency", "necessity"]
Measure = Literal["MSK", "decisive K", "deletion area"]


class AxisComparison(Record):
    """One ranking against another on one axis, slide by slide.

    Attributes:
        axis: Sufficiency (do the first tiles suffice?) or necessity (does the decision hang on
            them?).
        measure: What is compared on each slide.
        d: Share of slides on which the first ranking needs fewer tiles, minus the share on which
            it needs more.
        low: Lower end of its interval over patients; None where there is one patient or one draw.
        high: Upper end.
        n_slides: Slides compared.
        n_cases: Their patients.
        n_differ: Patients on whose slides the rankings differ.
        result: The first ranking is better, worse, the same, or it is unclear;
            ``"already minimal"`` where the second needs one tile on half of the slides: the axis
            then does not count.
    """

    axis: Axis
    measure: Measure
    d: Defined
    low: Number
    high: Number
    n_slides: int
    n_cases: int
    n_differ: int
    result: Literal["better", "worse", "same", "unclear", "already minimal"]

    @classmethod
    def of(
        cls, axis: Axis, measure: Measure, found: OrderComparison, *, informative: bool = True
    ) -> AxisComparison:
        """The record of a comparison; ``informative`` is false where the axis does not count."""
        result = {} if informative else {"result": "already minimal"}
        return cls(axis=axis, measure=measure, **{**asdict(found), **result})


class ReadoutRow(Record):
    """One ranking on the validation slides, beside ``evidence``.

    Attributes:
        ranking: Its name.
        decisive: Median decisive K; None where it is infinite.
        share: Share of the slides with a decisive set.
        fewer: Slides with a smaller decisive set than under evidence.
        more: Slides with a larger one, or with none where evidence has one.
        d: Mean of +1 and -1 over the slides.
        low: Lower end of its interval.
        high: Upper end of its interval.
        d_sufficiency: The same for MSK.
        area: Mean deletion area.
    """

    ranking: str
    decisive: Number
    share: Defined
    fewer: int
    more: int
    d: Number
    low: Number
    high: Number
    d_sufficiency: Number
    area: Defined


class Readout(Record):
    """Which ranking answers "which tiles?", and how the validation slides chose it.

    Attributes:
        chosen: The ranking.
        rule: What it was chosen by.
        n_slides: Decided validation slides.
        n_cases: Their patients.
        rows: Evidence and the selector on them.
        comparisons: The selector against evidence, in the order in which the rule asks.
    """

    chosen: str
    rule: str
    n_slides: int
    n_cases: int
    rows: list[ReadoutRow]
    comparisons: list[AxisComparison]

    @property
    def slides_in_words(self) -> str:
        """How many slides chose, and of how many patients."""
        slides = counted(self.n_slides, "decided validation slide")
        return f"{slides} of {counted(self.n_cases, 'patient')}"
