"""One tile more, one tile fewer, for any classifier: every subset is forwarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from foci.backbones import Backbone

BUDGET = 16_384
"""Most tokens that are forwarded at once, by default; sets the memory."""


class Candidates(Protocol):
    """What a classifier says of a set with one tile more or fewer.

    As :class:`~foci.reveal.candidates.PooledCandidates`, which needs one pass over the bag.
    """

    def full(self) -> Tensor:
        """Logits ``[C]`` of all tiles."""

    def adding(self, present: Tensor, tiles: Tensor) -> Tensor:
        """Logits ``[n, C]`` of the set with each of ``tiles`` added to it alone."""

    def removing(self, present: Tensor, tiles: Tensor) -> Tensor:
        """Logits ``[n, C]`` of the set with each of ``tiles`` taken out alone."""


class ForwardedCandidates:
    """Forwards the tokens of every subset, in bag order, several subsets at a time.

    Args:
        backbone: Any classifier.
        tokens: ``[N, d]`` of one bag.
        budget: Most tokens that are forwarded at once; a single larger subset goes alone.
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
        chunks = torch.split(tiles, max(1, self.budget // size))
        return torch.cat([self.backbone.aggregate(self.tokens[subsets(c)]) for c in chunks])
