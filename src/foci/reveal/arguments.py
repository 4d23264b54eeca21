"""Checks of arguments: features, orders, counts and whole numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.errors import FociError
from foci.reveal.curves import Direction

Indices: TypeAlias = Tensor | Sequence[int] | NDArray[np.integer[Any]]


def check_features(features: Tensor, d_in: int, slide_id: str | None = None) -> None:
    """Refuse anything but one bag ``[N, d_in]`` with at least one tile.

    Args:
        features: To be checked.
        d_in: Feature width of the backbone.
        slide_id: Whose features they are, for the error message.
    """
    if features.dim() != 2 or not len(features) or features.shape[1] != d_in:
        shape = " x ".join(map(str, features.shape))
        where, what = (
            ("features", "have shape") if slide_id is None else (slide_id, "has features of shape")
        )
        raise FociError(
            where,
            f"{what} {shape}, not tiles x {d_in}",
            "give one bag of the features that the backbone was trained on",
        )


def check_order(order: Indices, n_tiles: int) -> Tensor:
    """Tile indices as a tensor ``[N]``; refused unless every tile occurs exactly once."""
    order = _as_tensor(order)
    if order.dtype.is_floating_point or order.shape != (n_tiles,):
        raise FociError(
            "order",
            f"has shape {tuple(order.shape)} and type {order.dtype} for {n_tiles} tiles",
            "give the tile indices in reveal order, one per tile",
        )
    order = order.long()
    if not torch.equal(order.sort().values, torch.arange(n_tiles, device=order.device)):
        raise FociError("order", "names a tile twice or not at all", "give a permutation")
    return order


def check_counts(ks: Indices, n_tiles: int, direction: Direction) -> Tensor:
    """Counts as a tensor; refused unless they increase and leave at least one tile present."""
    if direction not in ("insert", "delete"):
        raise FociError("direction", f"cannot be {direction!r}", "use 'insert' or 'delete'")
    ks = _as_tensor(ks)
    low, high = (1, n_tiles) if direction == "insert" else (0, n_tiles - 1)
    if ks.dim() != 1 or not len(ks) or ks.dtype.is_floating_point:
        raise FociError("ks", "is not a list of counts", "give increasing whole numbers")
    ks = ks.long()
    if bool((ks.diff() <= 0).any()):
        raise FociError("ks", "is not increasing", "sort the counts and drop repetitions")
    if int(ks[0]) < low or int(ks[-1]) > high:
        raise FociError(
            "ks",
            f"runs from {int(ks[0])} to {int(ks[-1])} where {n_tiles} tiles allow {low} to {high}",
            "leave out the counts beyond",
        )
    return ks


def at_least_one(value: int, name: str) -> int:
    """An integer of 1 or more, as a plain int.

    >>> at_least_one(3, "rounds")
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise FociError(name, f"is {value!r}", "give a whole number from 1 on") from None
    if number < 1:
        raise FociError(name, f"{number} is too few", "give at least 1")
    return number


def _as_tensor(numbers: Indices) -> Tensor:
    """A tensor, also of the NumPy arrays that torch refuses: reversed views, unsigned integers."""
    if isinstance(numbers, np.ndarray) and numbers.dtype.kind in "iu":
        numbers = numbers.astype(np.int64)
    return torch.as_tensor(numbers)
