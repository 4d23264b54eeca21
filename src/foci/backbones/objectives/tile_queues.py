"""FIFO queues of tile features, one per class, kept in the state dict."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TileQueues(nn.Module):
    """One first-in-first-out queue of tiles per class; a full queue drops its oldest tile.

    Tiles are stored oldest first in a buffer, so that a resumed run has them.

    Args:
        n_classes: Number of queues.
        length: Most tiles in a queue.
        d_in: Feature width.

    >>> queues = TileQueues(n_classes=1, length=2, d_in=1)
    >>> for tile in (1.0, 2.0, 3.0):
    ...     queues.append(0, torch.tensor([tile]))
    >>> queues.tiles[0].tolist(), queues.size(0)
    ([[2.0], [3.0]], 2)
    >>> queues.next(0), queues.tiles[0].tolist()
    (tensor([2.]), [[3.0], [2.0]])
    """

    tiles: Tensor
    counts: Tensor

    def __init__(self, n_classes: int, length: int, d_in: int) -> None:
        super().__init__()
        self.register_buffer("tiles", torch.zeros(n_classes, length, d_in))
        self.register_buffer("counts", torch.zeros(n_classes, dtype=torch.long))

    def size(self, c: int) -> int:
        """Number of tiles that class c has queued."""
        return int(self.counts[c])

    def append(self, c: int, tile: Tensor) -> None:
        """Put a tile ``[D]`` at the end of the queue of class c."""
        if self.size(c) == self.tiles.shape[1]:
            self.next(c)
            self.counts[c] -= 1
        self.tiles[c, self.size(c)] = tile.detach()
        self.counts[c] += 1

    def next(self, c: int) -> Tensor:
        """Return the oldest tile of class c and move it to the end; the queue must not be empty."""
        oldest = self.tiles[c, 0].clone()
        queue = self.tiles[c, : self.size(c)]
        queue.copy_(queue.roll(-1, dims=0))
        return oldest

    def clear(self) -> None:
        """Empty all queues."""
        self.tiles.zero_()
        self.counts.zero_()
