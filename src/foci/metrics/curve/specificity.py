"""Specificity: is the target class reached before its strongest rival?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve.sufficiency import msk
from foci.metrics.curve.target import runner_up
from foci.metrics.inputs import Floats, Marks


@dataclass(frozen=True)
class Specificity:
    """MSK of the target and of its strongest rival on the same curve."""

    target_msk: int | None
    rival_msk: int | None
    rival: int

    @property
    def specific(self) -> bool:
        """The target is reached, and reached before its rival."""
        counts = [np.nan if k is None else float(k) for k in (self.target_msk, self.rival_msk)]
        return bool(comes_first(*np.array(counts)))


def comes_first(target: Floats, rival: Floats) -> Marks:
    """Where the target is reached, and reached before its rival; NaN is never reached."""
    first: Marks = ~np.isnan(target) & ~(rival <= target)
    return first


@card(
    title="Specificity",
    symbol=r"\mathrm{MSK}^{y},\ \mathrm{MSK}^{c^*}",
    equation=r"\mathrm{MSK}^{y}\ \text{against}\ \mathrm{MSK}^{c^*}, \quad "
    r"c^* = \arg\max_{c \ne y} p_c(\text{full})",
    direction="none",
    range=(0.0, math.inf),
    needs="one insertion curve and the full-bag probabilities",
    does_not_show="which tiles speak for the rival",
    source="FOCI",
)
def specificity(
    probs: ArrayLike, ks: ArrayLike, target: SupportsIndex, full: ArrayLike, kappa: float = 0.9
) -> Specificity:
    r"""MSK for the target against MSK for the strongest other class of the full bag.

    .. math:: \mathrm{MSK}^{y}\ \text{against}\ \mathrm{MSK}^{c^*}, \qquad
       c^* = \arg\max_{c \ne y} p_c(\text{full})

    A few tiles can make a classifier certain of anything. If the top tiles pass through certainty
    of the rival first, a small MSK is no evidence for the target.

    >>> result = specificity([[0.95, 0.05], [0.1, 0.9]], [1, 2], target=1, full=[0.2, 0.8])
    >>> result.target_msk, result.rival_msk, result.specific
    (2, 1, False)
    """
    curve, _, _ = inputs.curve(probs, ks, target)
    rival = runner_up(inputs.full_bag(full, curve.shape[1]), target)
    return Specificity(msk(curve, ks, target, kappa), msk(curve, ks, rival, kappa), rival)


@card(
    title="Specific share",
    symbol=r"\mathrm{Spec}(\kappa)",
    equation=r"|S|^{-1} \sum_s \mathbf{1}[\mathrm{MSK}_s^{y} < \mathrm{MSK}_s^{c^*}], \quad "
    r"\text{an unreached MSK being } \infty",
    direction="higher",
    range=(0.0, 1.0),
    needs="specificity of every slide",
    does_not_show="whether the target was reached with few tiles",
    source="FOCI",
)
def specific_share(slides: Sequence[Specificity]) -> float:
    r"""Share of slides on which the target is reached, and reached before its rival.

    .. math:: |S|^{-1} \sum_s \mathbf{1}[\mathrm{MSK}_s^{y} < \mathrm{MSK}_s^{c^*}]

    >>> specific_share([Specificity(1, None, 0), Specificity(3, 2, 0)])
    0.5
    """
    inputs.same_length(slides=slides)
    return float(np.mean([slide.specific for slide in slides]))
