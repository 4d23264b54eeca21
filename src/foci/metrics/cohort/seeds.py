"""Spread over seeds as the paper prints it."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card


@card(
    title="Spread over seeds",
    symbol=r"\sigma_{\text{seeds}}",
    equation=r"\sqrt{R^{-1} \sum_{r=1}^{R} (v_r - \bar v)^2}",
    direction="none",
    range=(0.0, math.inf),
    needs="one value per seed",
    does_not_show="sampling error over patients; with three seeds it is small by construction",
    source="the paper's +-: the population standard deviation",
)
def seed_spread(values: ArrayLike) -> float:
    r"""Population standard deviation over seeds (ddof 0), the paper's "+-".

    .. math:: \sqrt{R^{-1} \sum_{r=1}^{R} (v_r - \bar v)^2}

    0 for one seed.

    >>> round(seed_spread([3.0, 3.6, 3.3]), 6)
    0.244949
    """
    return float(inputs.numbers(values, "values").std(ddof=0))
