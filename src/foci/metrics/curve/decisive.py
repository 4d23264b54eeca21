"""Decisive K: the fewest top tiles that suffice for a decision and without which it is lost.

A rationale has two conditions: with these tiles the model predicts the target, and without them it
no longer does. MSK asks only for the first. :func:`decisive_steps` holds the definition for many
curves; ``decisive_k`` applies it to one slide, :func:`foci.metrics.decisive_points` to a cohort.
"""

from __future__ import annotations

import math
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve.stability import stable_from
from foci.metrics.curve.sufficiency import (
    count_or_none,
    first_crossing,
    followed_class,
    sufficient_steps,
)
from foci.metrics.inputs import Floats, Integers, Marks

PAPER_BETA = 0.2
"""The paper's bound on the target's probability without the rationale."""


def decisive_steps(
    inserted: Floats,
    deleted: Floats,
    target: int | Integers,
    kappa: float | Floats,
    beta: float | None = None,
) -> Marks:
    """Steps whose tiles suffice for the target and whose removal loses it.

    Args:
        inserted: ``[..., K, C]`` probabilities of the top K tiles alone.
        deleted: ``[..., K, C]`` probabilities without them, at the same counts.
        target: The class followed, one per curve.
        kappa: Operating confidence, one for all curves or one per curve.
        beta: None: the prediction must change. A number: the target's probability must be at most
            that.
    """
    enough = sufficient_steps(inserted, target, kappa)
    if beta is None:
        lost = deleted.argmax(axis=-1) != np.asarray(target)[..., None]
    else:
        lost = followed_class(deleted, target) <= beta
    steps: Marks = enough & lost
    return steps


def shared_counts(insert_ks: Integers, delete_ks: Integers) -> tuple[Integers, Integers, Integers]:
    """Counts known in both directions, and their rows in the insertion and the deletion curve.

    Deletion of nothing, K = 0, is no candidate. Without any tile to delete there is no shared
    count, as on a slide of one tile; any other pair of curves must share at least one.
    """
    shared, rows, places = np.intersect1d(
        insert_ks, delete_ks, assume_unique=True, return_indices=True
    )
    fix = "measure insertion and deletion at the same counts"
    possible = shared.size or not (delete_ks > 0).any()
    inputs.require(possible, "delete_ks", "shares no count with insert_ks", fix)
    return shared, rows, places


def beta_bound(beta: float | None) -> float | None:
    """Check the bound on the probability that may remain; None for the flip form."""
    fix = "pass a value from 0 up to, not including, 1; None asks for a flip"
    inputs.require(beta is None or 0 <= beta < 1, "beta", f"is {beta}", fix)
    return None if beta is None else float(beta)


def _one_slide(
    insert_probs: ArrayLike,
    insert_ks: ArrayLike,
    delete_probs: ArrayLike,
    delete_ks: ArrayLike,
    target: SupportsIndex,
    kappa: float,
    beta: float | None,
) -> tuple[Marks, Integers]:
    """Decisive steps of one slide and their counts."""
    inserted, insert_counts, followed = inputs.curve(insert_probs, insert_ks, target)
    deleted, delete_counts, _ = inputs.curve(delete_probs, delete_ks, target, lowest=0)
    alike = inserted.shape[1] == deleted.shape[1]
    what = f"has {deleted.shape[1]} classes, insert_probs {inserted.shape[1]}"
    inputs.require(alike, "delete_probs", what, "use one classifier")
    shared, rows, places = shared_counts(insert_counts, delete_counts)
    steps = decisive_steps(
        inserted[rows], deleted[places], followed, inputs.threshold(kappa), beta_bound(beta)
    )
    return steps, shared


@card(
    title="Decisive K",
    symbol=r"\mathrm{DK}_s(\kappa)",
    equation=r"\min\{1 \le K \le \min(K_{\max}, N-1) : \arg\max_c p_c(K) = y \wedge "
    r"p_y(K) \ge \kappa \wedge \arg\max_c p_c(\text{without the top } K) \ne y\}",
    direction="lower",
    range=(1, math.inf),
    needs="an insertion and a deletion curve of the same ranking, with all classes",
    does_not_show="that no other set of tiles would do, or that these tiles suffice for a "
    "diagnosis; where counts were skipped it is an upper bound",
    source="the paper, Eq. problem: both conditions of a rationale; flip form by FOCI",
)
def decisive_k(
    insert_probs: ArrayLike,
    insert_ks: ArrayLike,
    delete_probs: ArrayLike,
    delete_ks: ArrayLike,
    target: SupportsIndex,
    kappa: float = 0.9,
    beta: float | None = None,
) -> int | None:
    r"""Decisive K: fewest top-ranked tiles that suffice and without which the prediction changes.

    .. math:: \mathrm{DK}_s(\kappa) = \min\{1 \le K \le \min(K_{\max}, N-1) :
       \arg\max_c p_c(K) = y \wedge p_y(K) \ge \kappa \wedge
       \arg\max_c p_c(\text{without the top } K) \ne y\}

    With ``beta`` the last condition is the paper's,
    :math:`p_y(\text{without the top } K) \le \beta` with :math:`\beta = 0.2`. Only counts known in
    both directions are candidates, so on a grid the value is an upper bound.

    Args:
        insert_probs: ``[len(insert_ks), C]``, probabilities of the top K tiles alone.
        insert_ks: Reveal counts from 1 on, strictly increasing.
        delete_probs: ``[len(delete_ks), C]``, probabilities without the top K tiles.
        delete_ks: Deletion counts from 0 on, strictly increasing, below the number of tiles.
        target: The class followed: usually the full-bag prediction.
        kappa: Operating confidence in (0, 1].
        beta: None for the flip form; a bound on the remaining probability for the paper's form.

    Returns:
        The count, or None where no count meets both conditions.

    >>> kept = [[0.4, 0.6], [0.05, 0.95], [0.02, 0.98]]
    >>> rest = [[0.1, 0.9], [0.3, 0.7], [0.4, 0.6], [0.7, 0.3]]
    >>> decisive_k(kept, [1, 2, 3], rest, [0, 1, 2, 3], target=1)
    3
    >>> decisive_k(kept, [1, 2, 3], rest, [0, 1, 2, 3], target=1, beta=0.2) is None
    True
    """
    steps, shared = _one_slide(
        insert_probs, insert_ks, delete_probs, delete_ks, target, kappa, beta
    )
    return count_or_none(first_crossing(steps, shared)) if shared.size else None


@card(
    title="Stable decisive K",
    symbol=r"\mathrm{DK}^{\mathrm{stable}}_s(\kappa)",
    equation=r"\min\{K : \text{the conditions of}\ \mathrm{DK}_s\ \text{hold at every known}\ "
    r"K' \ge K\}",
    direction="lower",
    range=(1, math.inf),
    needs="an insertion and a deletion curve of the same ranking, with all classes",
    does_not_show="what happens at counts that were not measured",
    source="FOCI; flips can flip back",
)
def stable_decisive_k(
    insert_probs: ArrayLike,
    insert_ks: ArrayLike,
    delete_probs: ArrayLike,
    delete_ks: ArrayLike,
    target: SupportsIndex,
    kappa: float = 0.9,
    beta: float | None = None,
) -> int | None:
    r"""Smallest count from which the conditions of decisive K hold at every known count.

    .. math:: \min\{K : \forall K' \ge K,\ \arg\max_c p_c(K') = y \wedge p_y(K') \ge \kappa
       \wedge \arg\max_c p_c(\text{without the top } K') \ne y\}

    Arguments as in :func:`decisive_k`.

    >>> kept = [[0.05, 0.95]] * 3
    >>> rest = [[0.6, 0.4], [0.3, 0.7], [0.8, 0.2]]  # flips, flips back, flips again
    >>> stable_decisive_k(kept, [1, 2, 3], rest, [1, 2, 3], target=1)
    3
    """
    steps, shared = _one_slide(
        insert_probs, insert_ks, delete_probs, delete_ks, target, kappa, beta
    )
    return count_or_none(stable_from(steps, shared)) if shared.size else None
