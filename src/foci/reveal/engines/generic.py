"""Curves of any backbone: every subset is forwarded from the tokens, several per batch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.reveal.prefixes import Prefixes


def chunks(sizes: Tensor, budget: int) -> Iterator[slice]:
    """Split steps into batches whose padded size stays within the budget; at least one step each.

    >>> [(c.start, c.stop) for c in chunks(torch.tensor([1, 2, 3, 9]), budget=9)]
    [(0, 3), (3, 4)]
    """
    start, longest = 0, 0
    for step, size in enumerate(sizes.tolist()):
        longest = max(longest, size)
        if step > start and longest * (step - start + 1) > budget:
            yield slice(start, step)
            start, longest = step, size
    yield slice(start, len(sizes))


class GenericReveal:
    """Aggregates the tokens of every subset, in bag order.

    Args:
        backbone: Any backbone.
        tokens: ``[N, d]`` of one bag.
        budget: Most tokens, padding included, forwarded at once.
    """

    def __init__(self, backbone: Backbone, tokens: Tensor, budget: int) -> None:
        self.backbone, self.tokens, self.budget = backbone, tokens, budget

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of consecutive steps, chunk by chunk."""
        for chunk in chunks(prefixes.sizes, self.budget):
            subsets = [prefixes.subset(step) for step in range(chunk.start, chunk.stop)]
            padded = torch.nn.utils.rnn.pad_sequence(
                [self.tokens[subset] for subset in subsets], batch_first=True
            )
            sizes = prefixes.sizes[chunk]
            places = torch.arange(padded.shape[1], device=padded.device)
            yield chunk, self.backbone.aggregate(padded, places[None, :] < sizes[:, None])
