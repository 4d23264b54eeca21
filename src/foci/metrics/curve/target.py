"""The class a curve is followed for, and curves cut to a smaller budget."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.inputs import Floats, Integers


def predicted_class(full: ArrayLike) -> int:
    r"""Predicted class of the full bag, :math:`\hat y = \arg\max_c p_c(\text{full bag})`.

    Used as ``target`` it asks whether a subset recovers what the model *says*; the label asks
    whether it recovers what is *true*.

    >>> predicted_class([0.2, 0.5, 0.3])
    1
    """
    return int(inputs.full_bag(full).argmax())


def runner_up(full: ArrayLike, target: SupportsIndex) -> int:
    """Most probable class of the full bag other than the target; the lower index on a tie.

    >>> runner_up([0.2, 0.5, 0.3], target=1)
    2
    """
    probs = inputs.full_bag(full)
    return int(runners_up(probs, inputs.class_index(target, len(probs))))


def runners_up(full: Floats, target: int | Integers) -> Integers:
    """:func:`runner_up` of every row of ``[..., C]``."""
    followed = np.arange(full.shape[-1]) == np.asarray(target)[..., None]
    rivals: Integers = np.where(followed, -1.0, full).argmax(axis=-1)
    return rivals


def truncate(probs: ArrayLike, ks: ArrayLike, k_max: SupportsIndex) -> tuple[Floats, Integers]:
    """Cut a curve at ``k_max`` tiles (the paper's equal-budget table uses 32).

    >>> probs, ks = truncate([[0.6, 0.4], [0.3, 0.7], [0.1, 0.9]], ks=[1, 16, 64], k_max=32)
    >>> ks.tolist()
    [1, 16]
    """
    curve, counts, _ = inputs.curve(probs, ks, 0)
    within = counts <= inputs.whole(k_max, "k_max")
    what = f"is {k_max}, below the first count {counts[0]}"
    inputs.require(within.any(), "k_max", what, "raise k_max")
    return curve[within], counts[within]
