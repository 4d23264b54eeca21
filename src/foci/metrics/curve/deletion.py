"""Deletion drop and Faithfulness AUC: the full bag against the bag without its top K tiles."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve.areas import area_over_counts
from foci.metrics.curve.sufficiency import followed_class
from foci.metrics.inputs import Floats, Integers

PAPER_COUNTS = (16, 32, 64, 128, 256)
"""Deletion counts of the paper's Faithfulness AUC."""


def drops_from_full(full: Floats, probs: Floats, target: int | Integers) -> Floats:
    """Full-bag probability of the target minus that of every step, ``[..., K]``.

    Args:
        full: ``[..., C]`` full-bag probabilities.
        probs: ``[..., K, C]``, one curve or many of the same counts.
        target: The class followed, one per curve.
    """
    whole = np.take_along_axis(full, np.asarray(target)[..., None], axis=-1)
    drops: Floats = whole - followed_class(probs, target)
    return drops


@card(
    title="Deletion drop",
    symbol=r"\Delta p(K)",
    equation=r"p_y(\text{full}) - p_y(\text{without the top } K)",
    direction="higher",
    range=(-1.0, 1.0),
    needs="full-bag probabilities and one deletion curve",
    does_not_show="that the remaining tiles could not decide alone, or that the top tiles can",
    source="the paper, deletion-based perturbation; after RISE (Petsiuk et al., 2018)",
)
def deletion_drop(
    full: ArrayLike, probs: ArrayLike, ks: ArrayLike, target: SupportsIndex
) -> Floats:
    r"""Loss of target probability when the top K tiles are removed, for every K.

    .. math:: \Delta p(K) = p_y(\text{full}) - p_y(\text{without the top } K)

    Negative where deleting the tiles makes the model more certain. K runs below N: without any
    tile there is no prediction.

    >>> deletion_drop([0.25, 0.75], [[0.5, 0.5], [0.75, 0.25]], ks=[16, 32], target=1).tolist()
    [0.25, 0.5]
    """
    curve, _, followed = inputs.curve(probs, ks, target, lowest=0)
    return drops_from_full(inputs.full_bag(full, curve.shape[1]), curve, followed)


@card(
    title="Faithfulness AUC",
    symbol=r"\mathrm{Faith.\,AUC}",
    equation=r"K_{\max}^{-1} \sum_j \tfrac12 (\Delta p(K_j) + \Delta p(K_{j+1}))(K_{j+1} - K_j)",
    direction="higher",
    range=(-1.0, 1.0),
    needs="deletion drops at two or more counts, the paper's being 16, 32, 64, 128 and 256",
    does_not_show="sufficiency; an attention pool scores well because its ranking is its weight",
    source="the paper, Table deletion-based perturbation faithfulness",
)
def faithfulness_auc(ks: ArrayLike, drops: ArrayLike, k_max: SupportsIndex = 256) -> float:
    r"""Faithfulness AUC: trapezoid rule over the deletion drops, divided by K_max.

    .. math:: \frac{1}{K_{\max}} \sum_j
       \frac{\Delta p(K_j) + \Delta p(K_{j+1})}{2}(K_{j+1} - K_j)

    Args:
        ks: Deletion counts, strictly increasing.
        drops: :func:`deletion_drop` at these counts, of one slide or averaged over slides.
        k_max: The divisor.

    >>> faithfulness_auc([16, 32, 64, 128, 256], [0.016, 0.023, 0.036, 0.058, 0.090])
    0.05365625
    """
    values = inputs.numbers(drops, "drops")
    counts = inputs.increasing(ks, len(values), lowest=0)
    ceiling = inputs.up_to(counts, k_max, "k_max")
    bounded = np.abs(values).max() <= 1
    inputs.require(bounded, "drops", "leaves [-1, 1]", "give differences of probabilities")
    inputs.require(len(counts) > 1, "ks", "has a single count", "an area needs two or more")
    return float(area_over_counts(values, counts, divisor=ceiling))
