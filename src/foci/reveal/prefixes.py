"""The subsets behind a curve: prefixes of one sequence of tiles; checks of its arguments."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.errors import FociError
from foci.reveal import K_MAX, Direction

Indices: TypeAlias = Tensor | Sequence[int] | NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Prefixes:
    """Which tiles are present at every step of a curve.

    Attributes:
        sequence: ``[N]`` tile indices; step j sees the first ``sizes[j]`` of them.
        sizes: ``[J]`` number of tiles present, each between 1 and N.
    """

    sequence: Tensor
    sizes: Tensor

    @classmethod
    def of(cls, order: Tensor, ks: Tensor, direction: Direction) -> Prefixes:
        """Insertion reveals the first k tiles of the order; deletion leaves the last N - k.

        >>> order, ks = torch.tensor([2, 0, 1]), torch.tensor([1, 2])
        >>> Prefixes.of(order, ks, "delete").subset(0).tolist()
        [0, 1]
        """
        if direction == "insert":
            return cls(order, ks)
        return cls(order.flip(0), len(order) - ks)

    def subset(self, step: int) -> Tensor:
        """Indices of the tiles present at a step, in bag order."""
        return self.sequence[: int(self.sizes[step])].sort().values


def default_counts(n_tiles: int, direction: Direction) -> Tensor:
    """Every count: 1..min(256, N) revealed, or 0..min(256, N - 1) deleted.

    >>> default_counts(3, "insert").tolist(), default_counts(3, "delete").tolist()
    ([1, 2, 3], [0, 1, 2])
    """
    if direction == "insert":
        return torch.arange(1, min(K_MAX, n_tiles) + 1)
    return torch.arange(0, min(K_MAX, n_tiles - 1) + 1)


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
    """An integer of 1 or more, as a plain int."""
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
