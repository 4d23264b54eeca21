"""Deletion drop, Faithfulness AUC, tiles to flip, and ERASER's two scores.

Each compares the full bag with a curve: the bag without its top K tiles (deletion), or, for
:func:`sufficiency`, with only them (insertion).
"""

from __future__ import annotations

import math
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


@card(
    title="Tiles to flip",
    symbol=r"\mathrm{TTF}_s",
    equation=r"\min\{K : \arg\max_c p_c(\text{without the top } K) \ne y\}",
    direction="lower",
    range=(0, math.inf),
    needs="one deletion curve with the probabilities of all classes",
    does_not_show="sufficiency: a decision can rest on few tiles and still survive their loss",
    source="after tokens-to-flip of ERASER (DeYoung et al., 2020), counted instead of divided",
)
def tiles_to_flip(probs: ArrayLike, ks: ArrayLike, target: SupportsIndex) -> int | None:
    r"""Fewest top tiles whose removal changes the decision: the counterpart of MSK.

    .. math:: \min\{K : \arg\max_c p_c(\text{without the top } K) \ne y\}

    None where the decision survives every deletion that was measured; 0 where the curve begins
    with the full bag and that is already decided otherwise.

    >>> tiles_to_flip([[0.2, 0.8], [0.6, 0.4]], ks=[1, 2], target=1)
    2
    """
    curve, counts, followed = inputs.curve(probs, ks, target, lowest=0)
    flipped = curve.argmax(axis=1) != followed
    return int(counts[flipped.argmax()]) if flipped.any() else None


@card(
    title="Comprehensiveness",
    symbol=r"\mathrm{Compr}",
    equation=r"|B|^{-1} \sum_{K \in B} [p_y(\text{full}) - p_y(\text{without the top } K)]",
    direction="higher",
    range=(-1.0, 1.0),
    needs="full-bag probabilities and one deletion curve",
    does_not_show="that the removed tiles suffice alone; redundancy in the bag lowers it",
    source="ERASER (DeYoung et al., 2020), with tile counts as budgets",
)
def comprehensiveness(
    full: ArrayLike, deleted: ArrayLike, ks: ArrayLike, target: SupportsIndex, budgets: ArrayLike
) -> float:
    r"""Mean loss of target probability when the top K tiles are *removed*, K from the budgets.

    .. math:: |B|^{-1} \sum_{K \in B} [p_y(\text{full}) - p_y(\text{without the top } K)]

    Args:
        full: ``[C]`` full-bag probabilities.
        deleted: ``[len(ks), C]``, the deletion curve.
        ks: Deletion counts.
        target: The class followed.
        budgets: The counts to average over, each of them in ``ks``.

    >>> comprehensiveness([0.25, 0.75], [[0.5, 0.5], [0.75, 0.25]], [8, 32], 1, budgets=[8, 32])
    0.375
    """
    return _mean_drop(full, deleted, ks, target, budgets)


@card(
    title="Sufficiency (ERASER)",
    symbol=r"\mathrm{Suff}",
    equation=r"|B|^{-1} \sum_{K \in B} [p_y(\text{full}) - p_y(\text{only the top } K)]",
    direction="lower",
    range=(-1.0, 1.0),
    needs="full-bag probabilities and one insertion curve",
    does_not_show="how many tiles are enough; that is MSK",
    source="ERASER (DeYoung et al., 2020), with tile counts as budgets",
)
def sufficiency(
    full: ArrayLike, revealed: ArrayLike, ks: ArrayLike, target: SupportsIndex, budgets: ArrayLike
) -> float:
    r"""Mean loss of target probability when *only* the top K tiles remain, K from the budgets.

    .. math:: |B|^{-1} \sum_{K \in B} [p_y(\text{full}) - p_y(\text{only the top } K)]

    Arguments as in :func:`comprehensiveness`, with the insertion curve. Lower is better; negative
    where the subset is more certain than the whole bag.

    >>> sufficiency([0.25, 0.75], [[0.5, 0.5], [0.25, 0.75]], [8, 32], 1, budgets=[8])
    0.25
    """
    return _mean_drop(full, revealed, ks, target, budgets)


def _mean_drop(
    full: ArrayLike, probs: ArrayLike, ks: ArrayLike, target: SupportsIndex, budgets: ArrayLike
) -> float:
    drops = deletion_drop(full, probs, ks, target)
    counts = inputs.increasing(ks, lowest=0)
    chosen = inputs.increasing(budgets, lowest=0, name="budgets")
    return float(drops[inputs.rows_at(counts, chosen)].mean())
