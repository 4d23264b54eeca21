"""MSK, Reach, conditional MSK and AUKC: where a reveal curve becomes sufficient.

The functions over ``[..., K]`` arrays hold the definitions. ``msk`` and ``aukc`` apply them to one
curve, :func:`foci.metrics.operating_points` to a whole cohort.
"""

from __future__ import annotations

import math
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve.areas import area_over_counts
from foci.metrics.inputs import Counts, Floats, Integers, Marks


def followed_class(probs: Floats, target: int | Integers) -> Floats:
    """Probability of the target: ``[K]`` of one curve ``[K, C]``, ``[B, K]`` of ``[B, K, C]``.

    One target for all curves, or one per curve.
    """
    classes = np.asarray(target)
    if classes.ndim == 0:
        return probs[..., classes]
    followed: Floats = probs[np.arange(len(classes)), :, classes]
    return followed


def sufficient_steps(probs: Floats, target: int | Integers, kappa: float | Floats) -> Marks:
    """Steps at which the model predicts the target with a probability of at least ``kappa``.

    Where two classes are largest, the one with the lower index is predicted.

    Args:
        probs: ``[..., K, C]``, one curve or many of the same counts.
        target: The class followed, one per curve.
        kappa: Operating confidence, one for all curves or one per curve.
    """
    largest = probs.argmax(axis=-1) == np.asarray(target)[..., None]
    confident = followed_class(probs, target) >= np.asarray(kappa)[..., None]
    steps: Marks = largest & confident
    return steps


def first_crossing(steps: Marks, ks: Integers) -> Floats:
    """First marked count of every row of ``[..., K]``; NaN if none is marked."""
    return np.where(steps.any(axis=-1), ks[steps.argmax(axis=-1)], np.nan)


def count_or_none(count: Floats) -> int | None:
    """One count as an integer; None for NaN."""
    return None if np.isnan(count) else int(count)


def reached(msks: Floats) -> Marks:
    """Where a count exists, for every element of an array of MSK."""
    marks: Marks = ~np.isnan(msks)
    return marks


@card(
    title="Minimum Sufficient K",
    symbol=r"\mathrm{MSK}_s(\kappa)",
    equation=r"\min\{K \le K_{\max} : \arg\max_c p_c(K) = y \wedge p_y(K) \ge \kappa\}",
    direction="lower",
    range=(1, math.inf),
    needs="one insertion curve with the probabilities of all classes",
    does_not_show="that these tiles suffice for a diagnosis, or that the model stays confident "
    "when more tiles follow",
    source="the paper, Sequential Reveal Protocol",
)
def msk(probs: ArrayLike, ks: ArrayLike, target: SupportsIndex, kappa: float = 0.9) -> int | None:
    r"""Minimum Sufficient K: fewest top-ranked tiles for a confident prediction of the target.

    .. math:: \mathrm{MSK}_s(\kappa) = \min\{K \le K_{\max} :
       \arg\max_c p_c(K) = y \wedge p_y(K) \ge \kappa\}

    Args:
        probs: ``[len(ks), C]``, the revealed tiles' class probabilities.
        ks: Reveal counts, strictly increasing.
        target: The class followed: the label, or the full-bag prediction.
        kappa: Operating confidence in (0, 1].

    Returns:
        The count, or None where the curve never reaches kappa. Where two classes are largest,
        the one with the lower index is predicted.

    >>> msk([[0.6, 0.4], [0.2, 0.8], [0.05, 0.95]], ks=[1, 2, 3], target=1)
    3
    >>> msk([[0.6, 0.4], [0.2, 0.8], [0.05, 0.95]], ks=[1, 2, 3], target=0) is None
    True
    """
    curve, counts, followed = inputs.curve(probs, ks, target)
    steps = sufficient_steps(curve, followed, inputs.threshold(kappa))
    return count_or_none(first_crossing(steps, counts))


@card(
    title="Reach",
    symbol=r"\mathrm{Reach}(\kappa)",
    equation=r"|S|^{-1} \sum_{s \in S} \mathbf{1}[\mathrm{MSK}_s(\kappa)\ \text{exists}]",
    direction="higher",
    range=(0.0, 1.0),
    needs="MSK of every slide, None where it does not exist",
    does_not_show="that the reached slides were classified correctly with all their tiles",
    source="the paper, Sequential Reveal Protocol",
)
def reach(msks: Counts) -> float:
    r"""Reach: share of slides on which the threshold is reached.

    .. math:: \mathrm{Reach}(\kappa) = |S|^{-1} \sum_{s \in S}
       \mathbf{1}[\mathrm{MSK}_s(\kappa)\ \text{exists}]

    >>> reach([3, None, 1, 8])
    0.75
    """
    return float(np.mean(reached(inputs.counts(msks))))


@card(
    title="Conditional MSK",
    symbol=r"\mathrm{MSK}_\mathrm{cond}",
    equation=r"|R|^{-1} \sum_{s \in R} \mathrm{MSK}_s, \quad R = \{s : \mathrm{MSK}_s\ "
    r"\text{exists}\}",
    direction="lower",
    range=(1, math.inf),
    needs="MSK of every slide, None where it does not exist",
    does_not_show="anything about slides that never reach: failing on hard slides lowers it",
    source="the paper, Sequential Reveal Protocol",
)
def msk_cond(msks: Counts) -> float:
    r"""Mean MSK over the slides that reach; NaN if none does.

    .. math:: \mathrm{MSK}_\mathrm{cond} = |R|^{-1} \sum_{s \in R} \mathrm{MSK}_s,
       \quad R = \{s : \mathrm{MSK}_s\ \text{exists}\}

    Read it beside :func:`reach` and :func:`foci.metrics.restricted_mean`.

    >>> msk_cond([3, None, 1, 8])
    4.0
    """
    values = inputs.counts(msks)
    known = values[reached(values)]
    return float(known.mean()) if known.size else math.nan


@card(
    title="Area under the K-curve",
    symbol=r"\mathrm{AUKC}",
    equation=r"\frac{1}{\rho_m} \sum_{j=1}^{m-1} \frac{p_y(K_j) + p_y(K_{j+1})}{2}"
    r"(\rho_{j+1} - \rho_j), \quad \rho_j = K_j / N",
    direction="higher",
    range=(0.0, 1.0),
    needs="one insertion curve and the number of candidate tiles",
    does_not_show="how many tiles are enough; N cancels, so only the last count sets the scale",
    source="the paper, Sequential Reveal Protocol",
)
def aukc(probs: ArrayLike, ks: ArrayLike, n_tiles: SupportsIndex, target: SupportsIndex) -> float:
    r"""Area under the K-curve: the target's probability over the revealed fraction of one slide.

    .. math:: \frac{1}{\rho_m} \sum_{j=1}^{m-1}
       \frac{p_y(K_j) + p_y(K_{j+1})}{2}(\rho_{j+1} - \rho_j), \qquad \rho_j = K_j / N

    The sum starts at the first reveal step, so a curve that is 1 throughout gives
    :math:`(K_m - K_1) / K_m`, 255/256 for the paper's counts. A bag with a single step gets its
    only probability. The cohort's AUKC is the mean over slides.

    >>> aukc([[0.5, 0.5], [0.2, 0.8], [0.2, 0.8]], ks=[1, 2, 4], n_tiles=10, target=1)
    0.5625
    """
    curve, counts, followed = inputs.curve(probs, ks, target)
    inputs.up_to(counts, n_tiles, "n_tiles")
    return float(area_over_counts(followed_class(curve, followed), counts))  # N cancels
