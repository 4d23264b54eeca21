"""Curves of any backbone: every subset is forwarded from the tokens, several per batch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.reveal.engines.batches import Batches
from foci.reveal.prefixes import Prefixes


class GenericReveal:
    """Aggregates the tokens of every subset, in bag order.

    Args:
        backbone: Any backbone.
        tokens: ``[N, d]`` of one bag.
        batches: How many subsets are forwarded at once.
    """

    def __init__(self, backbone: Backbone, tokens: Tensor, batches: Batches) -> None:
        self.backbone, self.tokens, self.batches = backbone, tokens, batches

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of consecutive steps, batch by batch."""
        return self.batches.run(prefixes.sizes, lambda steps: self._logits(prefixes, steps))

    def _logits(self, prefixes: Prefixes, steps: slice) -> Tensor:
        """Logits ``[b, C]`` of consecutive steps, in one padded batch."""
        subsets = [prefixes.subset(step) for step in range(steps.start, steps.stop)]
        padded = torch.nn.utils.rnn.pad_sequence(
            [self.tokens[subset] for subset in subsets], batch_first=True
        )
        places = torch.arange(padded.shape[1], device=padded.device)
        present = places[None, :] < prefixes.sizes[steps][:, None]
        return self.backbone.aggregate(padded, present)
