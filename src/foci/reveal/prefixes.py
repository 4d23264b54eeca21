"""A curve is a nested family of subsets: the first n tiles of one sequence, for many n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.errors import FociError

Direction = Literal["insert", "delete"]

Indices: TypeAlias = Tensor | Sequence[int] | NDArray[np.integer[Any]]

K_MAX = 256
"""The paper's largest reveal count."""


@dataclass(frozen=True)
class Nested:
    """Which tiles are present at every step of a curve.

    Attributes:
        sequence: ``[N]`` tile indices; step j sees the first ``sizes[j]`` of them.
        sizes: ``[J]`` number of tiles present, each between 1 and N.
    """

    sequence: Tensor
    sizes: Tensor

    def subset(self, step: int) -> Tensor:
        """Indices of the tiles present at a step, in bag order."""
        return self.sequence[: int(self.sizes[step])].sort().values


def default_counts(n_tiles: int, direction: Direction, k_max: int = K_MAX) -> Tensor:
    """Every count: 1..min(k_max, N) revealed, or 0..min(k_max, N - 1) deleted.

    >>> default_counts(3, "insert").tolist(), default_counts(3, "delete").tolist()
    ([1, 2, 3], [0, 1, 2])
    """
    if direction == "insert":
        return torch.arange(1, min(k_max, n_tiles) + 1)
    return torch.arange(0, min(k_max, n_tiles - 1) + 1)


def nest(order: Tensor, ks: Tensor, direction: Direction) -> Nested:
    """Inserting reveals the first k tiles of the order; deleting leaves the last N - k."""
    if direction == "insert":
        return Nested(order, ks)
    return Nested(order.flip(0), len(order) - ks)


def check_order(order: Indices, n_tiles: int) -> Tensor:
    """The order as a tensor of indices; it must name every tile exactly once."""
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
    """The counts as a tensor; increasing, and at least one tile present at every step."""
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


def _as_tensor(numbers: Indices) -> Tensor:
    """Also of NumPy arrays that tensors cannot be made from: reversed views, unsigned integers."""
    if isinstance(numbers, np.ndarray) and numbers.dtype.kind in "iu":
        numbers = numbers.astype(np.int64)
    return torch.as_tensor(numbers)
