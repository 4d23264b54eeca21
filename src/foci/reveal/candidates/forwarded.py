"""Add or remove one tile, for any backbone: every subset is forwarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.reveal.engines.batches import Batches

BUDGET = 16_384
"""Most tokens forwarded at once by default; bounds the memory."""


class Candidates(Protocol):
    """Logits of a set of tiles with one tile more or fewer.

    :class:`~foci.reveal.candidates.pooled.PooledCandidates` needs one pass over the bag for all of
    them, :class:`ForwardedCandidates` one forward pass per set.
    """

    def full(self) -> Tensor:
        """Logits ``[C]`` of all tiles."""

    def adding(self, present: Tensor, tiles: Tensor) -> Tensor:
        """Logits ``[n, C]`` of the set plus one tile, for each of ``tiles``."""

    def removing(self, present: Tensor, tiles: Tensor) -> Tensor:
        """Logits ``[n, C]`` of the set minus one tile, for each of ``tiles``."""


class ForwardedCandidates:
    """Forwards the tokens of every subset, in bag order, several subsets per batch.

    Args:
        backbone: Any classifier.
        tokens: ``[N, d]`` of one bag.
        budget: Most tokens forwarded at once; a larger subset is forwarded on its own.
    """

    def __init__(self, backbone: Backbone, tokens: Tensor, budget: int = BUDGET) -> None:
        self.backbone, self.tokens, self.budget = backbone, tokens, budget

    def full(self) -> Tensor:
        """See :class:`Candidates`."""
        return self.backbone.aggregate(self.tokens.unsqueeze(0))[0]

    def adding(self, present: Tensor, tiles: Tensor) -> Tensor:
        """See :class:`Candidates`."""
        members = present.nonzero().squeeze(-1)

        def grown(chunk: Tensor) -> Tensor:
            subset = torch.cat([members.expand(len(chunk), -1), chunk.unsqueeze(-1)], dim=-1)
            return subset.sort(dim=-1).values

        return self._forward(grown, tiles, len(members) + 1)

    def removing(self, present: Tensor, tiles: Tensor) -> Tensor:
        """See :class:`Candidates`."""
        members = present.nonzero().squeeze(-1)

        def shrunk(chunk: Tensor) -> Tensor:
            others = members != chunk.unsqueeze(-1)
            return members.expand(len(chunk), -1)[others].view(len(chunk), -1)

        return self._forward(shrunk, tiles, len(members) - 1)

    def _forward(self, subsets: Callable[[Tensor], Tensor], tiles: Tensor, size: int) -> Tensor:
        batches = Batches(self.budget, self.budget, grows=self.tokens.is_cuda)
        found = batches.run(
            torch.full((len(tiles),), size),
            lambda steps: self.backbone.aggregate(self.tokens[subsets(tiles[steps])]),
        )
        return torch.cat([logits for _, logits in found])
