"""Any other classifier: subsets are forwarded again, in bag order, several at a time."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.reveal.prefixes import Nested


def chunks(sizes: Tensor, budget: int) -> Iterator[slice]:
    """Consecutive steps whose padded tiles stay within the budget; at least one step each.

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
    """Gathers every subset from the tokens and aggregates it.

    Args:
        backbone: Any backbone.
        tokens: ``[N, d]`` of one bag.
        budget: Most tokens, padding included, that are forwarded at once.
    """

    def __init__(self, backbone: Backbone, tokens: Tensor, budget: int) -> None:
        self.backbone, self.tokens, self.budget = backbone, tokens, budget

    def steps(self, nested: Nested) -> Iterator[tuple[slice, Tensor]]:
        """Logits of consecutive steps, chunk by chunk."""
        for chunk in chunks(nested.sizes, self.budget):
            subsets = [nested.subset(step) for step in range(chunk.start, chunk.stop)]
            padded = torch.nn.utils.rnn.pad_sequence(
                [self.tokens[subset] for subset in subsets], batch_first=True
            )
            sizes = nested.sizes[chunk]
            places = torch.arange(padded.shape[1], device=padded.device)
            yield chunk, self.backbone.aggregate(padded, places[None, :] < sizes[:, None])
