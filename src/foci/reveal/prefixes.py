"""The subsets behind a curve: prefixes of one sequence of tiles."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.bags import Bag
from foci.errors import FociError
from foci.reveal.curves import K_MAX, Direction


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


# Random orders that depend on the slide's name and a seed alone.


def random_scores(
    bag: Bag | None, slide_id: str, n_tiles: int, seed: int = 0
) -> NDArray[np.float64]:
    """One uniform random number per tile, ``[N]``; sorted in descending order, a random order.

    Tiles are identified by their index in the file, so a tile has the same number whether or not a
    pre-filter dropped others, and in whatever order the bag lists its tiles.

    Args:
        bag: The bag, or None for features that come from no file.
        slide_id: The slide.
        n_tiles: Tiles of the bag.
        seed: Each gives another order.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise FociError("seed", f"is {seed!r}", "give a whole number")
    if bag is None:
        return uniform_scores(slide_id, n_tiles, seed)
    drawn: NDArray[np.float64] = uniform_scores(slide_id, bag.n_total, seed)[bag.tiles]
    return drawn


def uniform_scores(slide_id: str, n_tiles: int, seed: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) that depend on nothing but the arguments.

    Neither the machine nor a library version changes them: the raw stream of PCG64, which NumPy
    guarantees, is seeded with the SHA-256 of seed and slide name. (NumPy does not guarantee the
    stream of ``Generator.random``.)

    >>> uniform_scores("slide-1", 3, seed=0).round(4).tolist()
    [0.283, 0.1766, 0.1294]
    """
    digest = hashlib.sha256(f"{seed}\n{slide_id}".encode()).digest()
    raw = np.random.PCG64(int.from_bytes(digest, "big")).random_raw(n_tiles)
    return np.ldexp((raw >> np.uint64(11)).astype(np.float64), -53)


# Checks of arguments: features, orders, counts and whole numbers.


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
