"""Batches of subsets: as many tokens at once as memory allows, fewer after running out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Batches:
    """How many tokens, padding included, are forwarded at once.

    A GPU that runs out of memory gets the same subsets again in smaller batches; after every full
    batch that fits, the next may be twice as large, up to what is allowed and below what has
    failed. On a CPU the number stays as it is, so that a curve has the same bytes every time.

    Attributes:
        tokens: Tokens of the next batch.
        most: Tokens that are never exceeded.
        grows: Whether the number follows what fits.
    """

    tokens: int
    most: int
    grows: bool = False

    def run(
        self, sizes: Tensor, forward: Callable[[slice], Tensor]
    ) -> Iterator[tuple[slice, Tensor]]:
        """Consecutive steps with what ``forward`` gives for each batch of them.

        Args:
            sizes: ``[J]`` tiles of every step.
            forward: Called with steps that share a batch.

        Raises:
            torch.OutOfMemoryError: If a single step does not fit, or on a device that does not
                grow.

        >>> sizes = torch.tensor([1, 2, 3, 9])
        >>> [(s.start, s.stop) for s, _ in Batches(9, 9).run(sizes, lambda s: sizes[s])]
        [(0, 3), (3, 4)]
        """
        lengths, start = sizes.tolist(), 0
        while start < len(lengths):
            stop, padded = self._fitting(lengths, start)
            try:
                found = forward(slice(start, stop))
            except torch.OutOfMemoryError:
                if not self.grows or stop - start == 1:
                    raise
                self.most = self.tokens = max(1, padded // 2)
                torch.cuda.empty_cache()
                continue
            yield slice(start, stop), found
            if self.grows and stop < len(lengths):
                self.tokens = min(self.most, 2 * self.tokens)
            start = stop

    def _fitting(self, lengths: list[int], start: int) -> tuple[int, int]:
        """End of the batch that begins at a step, and its padded size; at least one step."""
        longest, stop = lengths[start], start + 1
        while stop < len(lengths):
            wider = max(longest, lengths[stop])
            if wider * (stop - start + 1) > self.tokens:
                break
            longest, stop = wider, stop + 1
        return stop, longest * (stop - start)
