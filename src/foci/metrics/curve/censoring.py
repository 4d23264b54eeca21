"""Restricted mean and Kaplan-Meier curve of MSK, slides that never reach censored.

The paper's numbers censor every slide at K_max, also a bag with fewer tiles: nothing is censored
before K_max then, and every mean runs over all slides. An audit's view of decided slides censors
each slide at min(K_max, N), because a slide cannot need more tiles than it has. ``k_max`` is one
count for all slides or one per slide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.inputs import Counts, Floats


def restricted(msks: Counts, k_max: SupportsIndex | ArrayLike = 256) -> Floats:
    """Per slide ``min(MSK, K_max)``; K_max where the slide does not reach.

    Args:
        msks: ``[S]`` MSK, None or NaN where a slide does not reach.
        k_max: Where counts are censored, one for all slides or one per slide.

    >>> restricted([3, None, 300], k_max=256).tolist()
    [3.0, 256.0, 256.0]
    >>> restricted([3, None, 300], k_max=[256, 40, 256]).tolist()
    [3.0, 40.0, 256.0]
    """
    values = inputs.counts(msks)
    return np.fmin(values, censoring_counts(k_max, len(values)))


def censoring_counts(k_max: Any, n_slides: int) -> Floats:
    """Check where counts are censored, for all slides or for each, as one count per slide."""
    if np.ndim(k_max) == 0:
        return np.full(n_slides, float(inputs.whole(k_max, "k_max")))
    array = inputs.numbers(k_max, "k_max")
    counted = (array == np.floor(array)) & (array >= 1)
    inputs.require(counted.all(), "k_max", "holds values that are not counts >= 1", "count tiles")
    what = f"has {array.size} counts for {n_slides} slides"
    inputs.require(array.size == n_slides, "k_max", what, "pass one count, or one per slide")
    return array


@card(
    title="Restricted mean K",
    symbol=r"\mathrm{RMK}(K_{\max})",
    equation=r"|S|^{-1} \sum_{s \in S} \min(\mathrm{MSK}_s, K_{\max})",
    direction="lower",
    range=(1, math.inf),
    needs="MSK of every slide, None where it does not exist, and K_max (or one count per slide)",
    does_not_show="whether a high value comes from many slow slides or few that never reach",
    source="FOCI; the restricted mean survival time of the Kaplan-Meier curve",
)
def restricted_mean(msks: Counts, k_max: SupportsIndex | ArrayLike = 256) -> float:
    r"""Mean number of tiles over *all* slides; a slide that never reaches counts as K_max.

    .. math:: \mathrm{RMK}(K_{\max}) = |S|^{-1} \sum_{s \in S} \min(\mathrm{MSK}_s, K_{\max})

    Unlike :func:`foci.metrics.msk_cond` it cannot be lowered by failing on hard slides. With one
    count per slide, :math:`K_{\max}` is the slide's own :math:`\min(K_{\max}, N_s)`.

    >>> restricted_mean([2, None, 6], k_max=256)
    88.0
    >>> restricted_mean([2, None, 6], k_max=[256, 40, 256])
    16.0
    """
    return float(restricted(msks, k_max).mean())


@dataclass(frozen=True)
class KaplanMeier:
    """Share of slides that still need more than k tiles: a right-continuous step function.

    Attributes:
        ks: Where the curve steps down, from 0 on.
        survival: Its value from each of ``ks`` up to the next.
        k_max: Where it ends: the count, or the largest count, at which slides are censored.
    """

    ks: Floats
    survival: Floats
    k_max: int

    @property
    def area(self) -> float:
        """Area up to K_max: the restricted mean, where all slides are censored at one count."""
        return float(np.dot(self.survival, np.diff(self.ks, append=self.k_max)))

    @property
    def median(self) -> float | None:
        """Tiles after which at least half of the slides have reached; None if they never do."""
        half = self.survival <= 0.5
        return float(self.ks[half.argmax()]) if half.any() else None


@card(
    title="Kaplan-Meier curve over K",
    symbol=r"S(k)",
    equation=r"\prod_{k_i \le k} (1 - d_i / n_i)",
    direction="lower",
    range=(0.0, math.inf),
    needs="MSK of every slide, None where it does not exist, and K_max",
    does_not_show="what a censored slide would need",
    source="Kaplan and Meier, 1958, over tile counts",
)
def kaplan_meier(msks: Counts, k_max: SupportsIndex | ArrayLike = 256) -> KaplanMeier:
    r"""Share of slides that need more than k tiles, censored at K_max.

    .. math:: S(k) = \prod_{k_i \le k} \Big(1 - \frac{d_i}{n_i}\Big)

    with :math:`d_i` slides reaching at :math:`k_i` of the :math:`n_i` still open; a slide censored
    at :math:`k_i` is still open there. Where all slides are censored at one count the product is
    the share of slides still open, and is computed as that share, without the rounding of the
    products in :func:`scipy.stats.ecdf`. With one count per slide, a censored slide is taken to go
    on as those still open do, so that the area is at least :func:`restricted_mean`.

    Args:
        msks: ``[S]`` MSK, None or NaN where a slide does not reach.
        k_max: Where counts are censored, one for all slides or one per slide.

    >>> curve = kaplan_meier([1, 1, 4, None], k_max=8)
    >>> curve.ks.tolist(), curve.survival.tolist()
    ([0.0, 1.0, 4.0], [1.0, 0.5, 0.25])
    >>> curve.area, curve.median
    (3.5, 1.0)
    >>> kaplan_meier([1, 1, 4, None], k_max=[8, 8, 8, 2]).survival.tolist()
    [1.0, 0.5, 0.0]
    """
    values = inputs.counts(msks)
    ends = censoring_counts(k_max, values.size)
    steps, reached = np.unique(values[values <= ends], return_counts=True)
    if (ends == ends[0]).all():
        survival = (values.size - np.cumsum(reached)) / values.size
    else:
        times = np.sort(np.fmin(values, ends))
        at_risk = values.size - np.searchsorted(times, steps, side="left")
        survival = np.multiply.accumulate(1 - reached / at_risk)
    return KaplanMeier(
        ks=np.concatenate([[0.0], steps]),
        survival=np.concatenate([[1.0], survival]),
        k_max=int(ends.max()),
    )
