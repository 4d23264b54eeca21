"""A number with its spread over seeds; a seed without one says why."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from foci.metrics import seed_spread

Spread = Literal["population", "sample"]


class NotMeasured(Exception):  # noqa: N818 - a reason, not a failure
    """Why a number does not exist, in a few words."""


@dataclass(frozen=True)
class Value:
    """Mean and standard deviation over seeds of one quantity.

    Attributes:
        mean: Over the seeds that have a number; None if there is none.
        std: Standard deviation over them; None for fewer than two.
        n: How many seeds have a number.
        seeds: The number of every seed, or of every seed and fold.
        gaps: Why a seed has none, by seed; ``None`` as a key for the value as a whole.
    """

    mean: float | None
    std: float | None = None
    n: int = 0
    seeds: Mapping[str, float] = field(default_factory=dict)
    gaps: Mapping[str | None, str] = field(default_factory=dict)

    @classmethod
    def over(
        cls,
        seeds: Mapping[str, float],
        gaps: Mapping[str | None, str] | None = None,
        spread: Spread = "population",
    ) -> Value:
        """Average the seeds.

        >>> value = Value.over({"42": 3.0, "43": 3.6, "44": 3.3})
        >>> round(value.mean, 6), round(value.std, 6), value.n
        (3.3, 0.244949, 3)
        """
        kept = {seed: float(number) for seed, number in seeds.items() if math.isfinite(number)}
        lost: dict[str | None, str] = dict(gaps or {})
        for seed in seeds:
            if seed not in kept:
                lost.setdefault(seed, "is not defined")
        numbers = list(kept.values())
        mean = float(np.mean(numbers)) if numbers else None
        return cls(mean, _spread(numbers, spread), len(numbers), kept, lost)

    @classmethod
    def absent(cls, reason: str) -> Value:
        """A value that no seed has, for one reason."""
        return cls(None, gaps={None: reason})

    @property
    def gap(self) -> str | None:
        """Why seeds have no number, in one line; None if all have one.

        >>> Value.over({"42": 1.0}, {"43": "diverged", "44": "diverged"}).gap
        'seeds 43, 44: diverged'
        """
        by_reason: dict[str, list[str]] = {}
        for seed, reason in self.gaps.items():
            by_reason.setdefault(reason, []).extend([] if seed is None else [seed])
        parts = [
            f"{_seeds(seeds)}: {reason}" if seeds else reason for reason, seeds in by_reason.items()
        ]
        return "; ".join(parts) or None

    def numbers(self) -> list[float]:
        """The numbers of the seeds that have one."""
        return list(self.seeds.values())


def combine(function: Callable[..., float], *values: Value, spread: Spread = "population") -> Value:
    """Apply a function seed by seed, where every value has the seed, and average.

    The mean is over seeds that all values have. Where a value has no seeds but a mean (a number
    from print), the function is applied to the means.

    >>> base, foci = Value.over({"1": 4.0, "2": 8.0}), Value.over({"1": 2.0, "2": 2.0})
    >>> combine(lambda a, b: b - a, base, foci).mean
    -4.0
    """
    means = [value.mean for value in values if value.mean is not None and not value.seeds]
    if len(means) == len(values):
        return Value(function(*means), None, min(value.n for value in values))
    shared = [s for s in values[0].seeds if all(s in value.seeds for value in values)]
    numbers = {seed: function(*(value.seeds[seed] for value in values)) for seed in shared}
    return Value.over(numbers, all_gaps(values), spread)


def of_means(function: Callable[..., float], *values: Value) -> Value:
    """Apply a function once, to means over seeds: for SHI, which averages first.

    The means are over the seeds that all values have. The numbers of the seeds are those of the
    function seed by seed; they show the spread.

    >>> base, foci = Value.over({"1": 4.0, "2": 8.0}), Value.over({"1": 2.0, "2": 2.0})
    >>> saved = of_means(lambda a, b: (a - b) / a, base, foci)
    >>> round(saved.mean, 6), saved.seeds
    (0.666667, {'1': 0.5, '2': 0.75})
    """
    seed_by_seed = combine(function, *values)
    if seed_by_seed.mean is None or not seed_by_seed.seeds:
        return seed_by_seed
    means = [float(np.mean([value.seeds[s] for s in seed_by_seed.seeds])) for value in values]
    return replace(seed_by_seed, mean=function(*means))


def all_gaps(values: Sequence[Value]) -> dict[str | None, str]:
    """The gaps of several values, the first reason of every seed."""
    lost: dict[str | None, str] = {}
    for value in values:
        for seed, reason in value.gaps.items():
            lost.setdefault(seed, reason)
    return lost


def _spread(numbers: Sequence[float], spread: Spread) -> float | None:
    if len(numbers) < 2:
        return None
    return seed_spread(numbers) if spread == "population" else float(np.std(numbers, ddof=1))


def _seeds(seeds: Sequence[str]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"
