"""Other views of a stored curve: another class, a smaller budget. No model is run again."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.inputs import Floats, Integers


def predicted_class(full: ArrayLike) -> int:
    r"""The model's own decision :math:`\hat y = \arg\max_c p_c(\text{full bag})`.

    Used as ``target`` it asks whether a subset recovers what the model *says*; the label asks
    whether it recovers what is *true*.

    >>> predicted_class([0.2, 0.5, 0.3])
    1
    """
    return int(inputs.full_bag(full).argmax())


def runner_up(full: ArrayLike, target: SupportsIndex) -> int:
    """The strongest class beside the target in the full bag; the lower index on a tie.

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
    """The part of a curve within a smaller budget (the paper's equal-budget table: 32 tiles).

    >>> probs, ks = truncate([[0.6, 0.4], [0.3, 0.7], [0.1, 0.9]], ks=[1, 16, 64], k_max=32)
    >>> ks.tolist()
    [1, 16]
    """
    curve, counts, _ = inputs.curve(probs, ks, 0)
    within = counts <= inputs.whole(k_max, "k_max")
    what = f"is {k_max}, below the first count {counts[0]}"
    inputs.require(within.any(), "k_max", what, "raise k_max")
    return curve[within], counts[within]
