"""How well probabilities tell each class from the rest, with patients drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.metrics import inputs
from foci.metrics.inputs import Floats, Integers
from foci.metrics.stats import case_draws

_DRAWS_AT_ONCE = 100


def class_aucs(probs: ArrayLike, labels: ArrayLike) -> Floats:
    """AUC of each class against the rest, ``[C]``; NaN where all or no slides are of the class.

    >>> class_aucs([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]], labels=[0, 0, 1]).tolist()
    [0.5, 0.5]
    """
    scores = inputs.probabilities(probs)
    true = inputs.class_indices(labels, "labels", scores.shape[1])
    inputs.same_length(probs=scores, labels=true)
    aucs: Floats = _weighted(scores, true, np.ones((1, len(true)), dtype=np.int64))[0]
    return aucs


def class_auc_draws(
    probs: ArrayLike,
    labels: ArrayLike,
    cases: Sequence[Any] | NDArray[Any],
    n_boot: int = 1000,
    seed: int = 0,
) -> Floats:
    r"""Cluster bootstrap of :func:`class_aucs`: whole patients are drawn with replacement.

    .. math:: \mathrm{AUC}_c^{(b)} =
       \frac{\sum_{i,j} w_i^{(b)} w_j^{(b)} \big(\mathbf{1}[p_i > p_j]
       + \tfrac12 \mathbf{1}[p_i = p_j]\big)}{\sum_i w_i^{(b)} \sum_j w_j^{(b)}},
       \qquad y_i = c,\ y_j \ne c

    Args:
        probs: ``[S, C]`` class probabilities.
        labels: ``[S]`` class indices.
        cases: The patient of every slide.
        n_boot: Number of draws.
        seed: Same seed, same draws as :func:`foci.metrics.case_means`.

    Returns:
        ``[n_boot, C]``; NaN where all or no slides of a draw are of the class.
    """
    scores = inputs.probabilities(probs)
    true = inputs.class_indices(labels, "labels", scores.shape[1])
    case, weights = case_draws(cases, len(true), n_boot, seed)
    parts = [
        _weighted(scores, true, weights[start : start + _DRAWS_AT_ONCE, case].astype(np.int64))
        for start in range(0, n_boot, _DRAWS_AT_ONCE)
    ]
    return np.concatenate(parts)


def _weighted(scores: Floats, labels: Integers, weights: Integers) -> Floats:
    """AUC of each class against the rest with ``[B, S]`` weights of the slides, ``[B, C]``."""
    columns = [
        _one_against_rest(scores[:, index], labels == index, weights)
        for index in range(scores.shape[1])
    ]
    return np.stack(columns, axis=1)


def _one_against_rest(scores: Floats, positive: NDArray[np.bool_], weights: Integers) -> Floats:
    """Weighted Mann-Whitney U over the weight of all pairs, from sums over tied scores."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf) > 0)
    sorted_weights, sign = weights[:, order], positive[order]
    above = np.add.reduceat(np.where(sign, sorted_weights, 0), starts, axis=1)
    rest = np.add.reduceat(np.where(sign, 0, sorted_weights), starts, axis=1)
    below = np.cumsum(rest, axis=1) - rest
    won = (above * (below + rest / 2)).sum(axis=1)
    pairs = above.sum(axis=1) * rest.sum(axis=1)
    aucs: Floats = np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)
    return aucs
