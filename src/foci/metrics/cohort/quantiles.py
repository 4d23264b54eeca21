"""Median and quartiles of tile counts where a missing count is infinite.

A ranking that fails must not look good: slides without a count stay in, above every count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve.sufficiency import reached
from foci.metrics.inputs import Counts, Floats, Integers

QUARTILES = (0.25, 0.5, 0.75)
_KINDS: tuple[Literal["beyond", "none"] | None, ...] = (None, "beyond", "none")


@dataclass(frozen=True)
class CountQuantile:
    """A quantile of tile counts: a number, or the reason why it is infinite.

    Attributes:
        value: The quantile; None where it is infinite.
        missing: ``"beyond"``: more than K_max tiles; ``"none"``: no number of tiles is enough; None
            where ``value`` is a number.
    """

    value: float | None
    missing: Literal["beyond", "none"] | None


def quantiles_with_missing(
    counts: Counts, beyond: ArrayLike, q: Sequence[float] = QUARTILES
) -> tuple[CountQuantile, ...]:
    """Quantiles of tile counts with missing counts as infinity, for instance of decisive K.

    The slides are sorted: counts, then those censored at K_max, then those that no count helps.
    Between two counts the quantile is interpolated as by :func:`numpy.quantile`. Between a count
    and a missing one it is missing.

    Args:
        counts: ``[S]`` counts of the assessable slides, NaN or None where there is none.
        beyond: ``[S]`` true where a missing count is censored at K_max; any other missing count
            does not exist.
        q: The quantiles, each in [0, 1].

    >>> quantiles_with_missing([3, None, 5, None], beyond=[0, 1, 0, 0], q=[0, 0.25, 0.75])[1:]
    (CountQuantile(value=4.5, missing=None), CountQuantile(value=None, missing='none'))
    >>> quantiles_with_missing([2, 4, None], beyond=[0, 0, 1], q=[0.5, 1])
    (CountQuantile(value=4.0, missing=None), CountQuantile(value=None, missing='beyond'))
    """
    values, kinds = _sorted(counts, beyond)
    sizes = np.arange(1, len(values) + 1)
    return _named(*_interpolated(values, kinds, sizes, _shares(q)))


def _shares(q: Sequence[float]) -> Floats:
    shares = inputs.numbers(q, "q")
    inside = shares.min() >= 0 and shares.max() <= 1
    inputs.require(inside, "q", "leaves [0, 1]", "pass shares, 0.5 for the median")
    return shares


def _sorted(counts: Counts, beyond: ArrayLike) -> tuple[Floats, Integers]:
    """Counts and their kinds (0 a count, 1 beyond K_max, 2 none), in order."""
    values, censored = inputs.counts(counts, "counts"), inputs.numbers(beyond, "beyond")
    inputs.same_length(counts=values, beyond=censored)
    inputs.require(np.isin(censored, (0, 1)).all(), "beyond", "is not true or false", "pass marks")
    found = reached(values)
    fix = "mark only slides without a count"
    inputs.require(not censored[found].any(), "beyond", "marks a slide that has a count", fix)
    kinds = np.where(found, 0, np.where(censored == 1, 1, 2))
    order = np.lexsort((values, kinds))
    return values[order], kinds[order]


def _interpolated(
    values: Floats, kinds: Integers, sizes: Integers, shares: Floats
) -> tuple[Floats, Integers]:
    """Quantiles of sorted values and their kinds, from the running total of their weights."""
    position = np.round((sizes[-1] - 1) * shares, 9)  # 100 * 0.55 must not lie above 55
    below = np.floor(position)
    lower, upper = (np.searchsorted(sizes, at, side="right") for at in (below, np.ceil(position)))
    kind = np.maximum(kinds[lower], kinds[upper])
    between = values[lower] + (position - below) * (values[upper] - values[lower])
    return np.where(kind == 0, between, np.nan), kind


def _named(values: Floats, kinds: Integers) -> tuple[CountQuantile, ...]:
    return tuple(
        CountQuantile(None if kind else float(value), _KINDS[kind])
        for value, kind in zip(values, kinds, strict=True)
    )


@dataclass(frozen=True)
class GeometricRatio:
    """Ratio of two geometric means and the number of slides behind it; NaN if there is none."""

    ratio: float
    n: int


@card(
    title="Ratio of geometric means",
    symbol=r"\mathrm{GMR}",
    equation=r"\exp\big(|B|^{-1} \sum_{s \in B} (\ln a_s - \ln b_s)\big), \quad "
    r"B = \{s : \text{both rankings reach}\}",
    direction="lower",
    range=(0.0, math.inf),
    needs="tile counts of every slide under two rankings",
    does_not_show="the slides that only one ranking reaches; it is no part of any answer's rule",
    source="FOCI",
)
def geometric_mean_ratio(a: Counts, b: Counts) -> GeometricRatio:
    r"""Ratio of the geometric means of two rankings' tile counts, on the slides both reach.

    .. math:: \exp\Big(|B|^{-1} \sum_{s \in B} (\ln a_s - \ln b_s)\Big), \quad
       B = \{s : a_s\ \text{and}\ b_s\ \text{exist}\}

    Below 1 the first ranking needs fewer tiles: 0.5 is half as many. It gives the size of a
    difference; whether there is one, :func:`foci.metrics.compare_orders` says.

    >>> geometric_mean_ratio(a=[1, 2, None], b=[4, 2, 3])
    GeometricRatio(ratio=0.5, n=2)
    """
    first, second = inputs.counts(a, "a"), inputs.counts(b, "b")
    inputs.same_length(a=first, b=second)
    both = reached(first) & reached(second)
    ratios = np.log(first[both]) - np.log(second[both])
    ratio = float(np.exp(ratios.mean())) if both.any() else math.nan
    return GeometricRatio(ratio, int(both.sum()))
