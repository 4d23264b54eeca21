"""Restricted mean and Kaplan-Meier curve of MSK, slides that never reach censored at K_max.

A bag with fewer than K_max tiles that does not reach with all of them counts as K_max too: more
tiles of that slide do not exist, so it is at least as bad as a bag that ran out of budget. Hence
nothing is censored before K_max, and every mean runs over all slides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.inputs import Counts, Floats


def restricted(msks: Counts, k_max: SupportsIndex = 256) -> Floats:
    """Per slide ``min(MSK, K_max)``; K_max where the slide does not reach.

    >>> restricted([3, None, 300], k_max=256).tolist()
    [3.0, 256.0, 256.0]
    """
    ceiling = float(inputs.whole(k_max, "k_max"))
    return np.fmin(inputs.counts(msks), ceiling)


@card(
    title="Restricted mean K",
    symbol=r"\mathrm{RMK}(K_{\max})",
    equation=r"|S|^{-1} \sum_{s \in S} \min(\mathrm{MSK}_s, K_{\max})",
    direction="lower",
    range=(1, math.inf),
    needs="MSK of every slide, None where it does not exist, and K_max",
    does_not_show="whether a high value comes from many slow slides or few that never reach",
    source="FOCI; the restricted mean survival time of the Kaplan-Meier curve",
)
def restricted_mean(msks: Counts, k_max: SupportsIndex = 256) -> float:
    r"""Mean number of tiles over *all* slides; a slide that never reaches counts as K_max.

    .. math:: \mathrm{RMK}(K_{\max}) = |S|^{-1} \sum_{s \in S} \min(\mathrm{MSK}_s, K_{\max})

    Unlike :func:`foci.metrics.msk_cond` it cannot be lowered by failing on hard slides.

    >>> restricted_mean([2, None, 6], k_max=256)
    88.0
    """
    return float(restricted(msks, k_max).mean())


@dataclass(frozen=True)
class KaplanMeier:
    """Share of slides that still need more than k tiles: a right-continuous step function.

    Attributes:
        ks: Where the curve steps down, from 0 on.
        survival: Its value from each of ``ks`` up to the next.
        k_max: Where it is censored.
    """

    ks: Floats
    survival: Floats
    k_max: int

    @property
    def area(self) -> float:
        """Area up to K_max, which is the restricted mean."""
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
    does_not_show="what a slide censored at K_max would need",
    source="Kaplan and Meier, 1958, over tile counts",
)
def kaplan_meier(msks: Counts, k_max: SupportsIndex = 256) -> KaplanMeier:
    r"""Share of slides that need more than k tiles, censored at K_max.

    .. math:: S(k) = \prod_{k_i \le k} \Big(1 - \frac{d_i}{n_i}\Big)

    with :math:`d_i` slides reaching at :math:`k_i` of the :math:`n_i` still open. Nothing is
    censored before K_max, so the product is the share of slides still open. It is computed as that
    share, without the rounding of the products in :func:`scipy.stats.ecdf`.

    >>> curve = kaplan_meier([1, 1, 4, None], k_max=8)
    >>> curve.ks.tolist(), curve.survival.tolist()
    ([0.0, 1.0, 4.0], [1.0, 0.5, 0.25])
    >>> curve.area, curve.median
    (3.5, 1.0)
    """
    values = inputs.counts(msks)
    ceiling = inputs.whole(k_max, "k_max")
    steps, reached = np.unique(values[values <= ceiling], return_counts=True)
    still_open = values.size - np.cumsum(reached)
    return KaplanMeier(
        ks=np.concatenate([[0.0], steps]),
        survival=np.concatenate([[1.0], still_open / values.size]),
        k_max=ceiling,
    )
