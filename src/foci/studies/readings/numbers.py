"""Where tables get their values from: a study's audits, or anything else that answers alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from foci.studies.cells.cost import CostResult
from foci.studies.readings.audit import AuditReading, Reading
from foci.studies.readings.measures import Measure, Place
from foci.studies.readings.values import Spread, Value


class Numbers(Protocol):
    """What the tables of sufficiency, deletion and selection ask."""

    @property
    def cohorts(self) -> tuple[str, ...]:
        """Names of the cohorts, in order."""

    @property
    def backbones(self) -> Mapping[str, str]:
        """Families by the names of the backbones, in order."""

    def value(self, place: Place, measure: Measure) -> Value:
        """A measure over the seeds of a place."""


@dataclass(frozen=True, eq=False)
class StudyNumbers:
    """Numbers of audits that were read: the values of a study.

    Attributes:
        cohorts: Names of the cohorts.
        backbones: Families by name of the backbone.
        audits: By place and by seed (or seed and fold): what was read, or why there is nothing.
        spread: Which standard deviation over seeds.
        validation: Score of fitted selectors on the validation slides, by place and seed.
        short_validation: Their AUKC up to 32 tiles, where the budget is adaptive.
        adaptive: Share and smallest count of the adaptive budget, by variant.
        trained: AUC on the test slides as noted when a classifier was trained, by place and seed.
        joint: AUC on the validation slides before and after every epoch of joint training.
        costs: Time and memory by backbone.
    """

    cohorts: tuple[str, ...]
    backbones: Mapping[str, str]
    audits: Mapping[Place, Mapping[str, AuditReading | str]]
    spread: Spread = "population"
    validation: Mapping[Place, Mapping[str, Reading]] = field(default_factory=dict)
    short_validation: Mapping[Place, Mapping[str, Reading]] = field(default_factory=dict)
    adaptive: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    trained: Mapping[Place, Mapping[str, Reading]] = field(default_factory=dict)
    joint: Mapping[Place, Mapping[str, Sequence[float] | str]] = field(default_factory=dict)
    costs: Mapping[str, CostResult | str] = field(default_factory=dict)

    def value(self, place: Place, measure: Measure) -> Value:
        """A measure over the seeds of a place; seeds without it say why."""
        found = self.audits.get(place)
        if not found:
            return Value.absent("not part of this study")
        readings: dict[str, Reading] = {}
        for seed, one in found.items():
            if isinstance(one, str):
                readings[seed] = one
                continue
            readings[seed] = one.numbers.get(measure, _why_not(one, measure))
        return self.over(readings)

    def validation_score(self, place: Place) -> Value:
        """Score on the validation slides of the selectors that were fitted at a place."""
        found = self.validation.get(place)
        return self.over(found) if found else Value.absent("not part of this study")

    def over(self, readings: Mapping[str, Reading]) -> Value:
        """Average readings over seeds."""
        numbers = {seed: one for seed, one in readings.items() if not isinstance(one, str)}
        gaps: dict[str | None, str] = {
            seed: one for seed, one in readings.items() if isinstance(one, str)
        }
        return Value.over(numbers, gaps, self.spread)

    def read(self, place: Place) -> dict[str, AuditReading]:
        """What was read of a place, by seed."""
        found = self.audits.get(place, {})
        return {seed: one for seed, one in found.items() if not isinstance(one, str)}


def _why_not(reading: AuditReading, measure: Measure) -> str:
    rankings = {known.ranking for known in reading.numbers}
    if measure.ranking and measure.ranking not in rankings:
        return f"the ranking {measure.ranking} was not run"
    if measure.view == "label" and not any(m.view == "label" for m in reading.numbers):
        return "the slides have no labels"
    if measure.k_max is not None and measure.k_max > reading.facts.k_max:
        return f"the audit ends at {reading.facts.k_max} tiles"
    return "not measured"
