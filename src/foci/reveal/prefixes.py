"""The subsets behind a curve: prefixes of one sequence of tiles."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

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
