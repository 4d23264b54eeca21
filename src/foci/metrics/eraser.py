"""Comprehensiveness and sufficiency at fixed budgets, under the names of ERASER."""

from __future__ import annotations

from typing import SupportsIndex

from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.deletion import deletion_drop


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
