"""Stable MSK: the count from which the confidence stays. Reveal curves are not monotone."""

from __future__ import annotations

import math
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve.sufficiency import count_or_none, reached, sufficient_steps
from foci.metrics.inputs import Counts, Floats, Integers, Marks


def stable_from(steps: Marks, ks: Integers) -> Floats:
    """Count from which every row of ``[..., K]`` stays marked; NaN if it ends unmarked."""
    n_last = np.logical_and.accumulate(steps[..., ::-1], axis=-1).sum(axis=-1)
    return np.where(n_last > 0, ks[np.minimum(len(ks) - n_last, len(ks) - 1)], np.nan)


@card(
    title="Stable MSK",
    symbol=r"\mathrm{MSK}^{\mathrm{stable}}_s(\kappa)",
    equation=r"\min\{K : \forall K' \ge K,\ \arg\max_c p_c(K') = y \wedge p_y(K') \ge \kappa\}",
    direction="lower",
    range=(1, math.inf),
    needs="one insertion curve up to K_max with the probabilities of all classes",
    does_not_show="what happens beyond the last count that was revealed",
    source="FOCI; the paper reports the first crossing only",
)
def stable_msk(
    probs: ArrayLike, ks: ArrayLike, target: SupportsIndex, kappa: float = 0.9
) -> int | None:
    r"""Smallest count from which the condition of MSK holds up to the end of the curve.

    .. math:: \min\{K : \forall K' \ge K,\
       \arg\max_c p_c(K') = y \wedge p_y(K') \ge \kappa\}

    >>> curve = [[0.05, 0.95], [0.5, 0.5], [0.1, 0.9]]  # crosses, falls back, crosses again
    >>> stable_msk(curve, ks=[1, 2, 3], target=1)
    3
    """
    curve, counts, followed = inputs.curve(probs, ks, target)
    steps = sufficient_steps(curve, followed, inputs.threshold(kappa))
    return count_or_none(stable_from(steps, counts))


@card(
    title="Share that falls back",
    symbol=r"\mathrm{Fallback}(\kappa)",
    equation=r"|R|^{-1} \sum_{s \in R} \mathbf{1}[\mathrm{MSK}^{\mathrm{stable}}_s \ne "
    r"\mathrm{MSK}_s], \quad R = \{s : \mathrm{MSK}_s\ \text{exists}\}",
    direction="lower",
    range=(0.0, 1.0),
    needs="MSK and stable MSK of every slide",
    does_not_show="for how many counts, or how far, the confidence falls",
    source="FOCI",
)
def fallback_share(msks: Counts, stable_msks: Counts) -> float:
    r"""Share of the slides that cross the threshold and later fall below it; NaN if none crosses.

    .. math:: |R|^{-1} \sum_{s \in R}
       \mathbf{1}[\mathrm{MSK}^{\mathrm{stable}}_s \ne \mathrm{MSK}_s]

    >>> fallback_share(msks=[1, 2, None, 4], stable_msks=[1, 7, None, None])
    0.6666666666666666
    """
    first, stable = inputs.counts(msks), inputs.counts(stable_msks, "stable_msks")
    inputs.same_length(msks=first, stable_msks=stable)
    crossed = reached(first)
    possible = np.isnan(stable) | (stable >= first)
    what, fix = "holds a count before the first crossing", "compute both from the same curves"
    inputs.require(possible.all(), "stable_msks", what, fix)
    return float(np.mean(stable[crossed] != first[crossed])) if crossed.any() else math.nan
