r"""Curves of a plain transformer (TransMIL): prefixes of similar length share a batch.

Exact, but cheaper than forwarding every prefix:

* prefixes of neighbouring lengths share a batch, padded to the longest of them, so that hardly any
  padding is multiplied and one batch stays in the processor's cache;
* the first layer's queries, keys and values do not depend on the prefix and are computed once;
* in the last layer only the CLS token is needed (:meth:`EncoderLayer.first`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor

from foci.backbones.layers.encoder import EncoderLayer
from foci.backbones.models.transmil import TransMIL
from foci.reveal.engines.batches import Batches
from foci.reveal.prefixes import Prefixes


class PackedReveal:
    """Forwards prefixes of neighbouring lengths in one padded batch.

    Args:
        backbone: The paper's TransMIL, or any width of it.
        tokens: ``[N, d]`` of one bag.
        batches: How many prefixes are forwarded at once.
    """

    def __init__(self, backbone: TransMIL, tokens: Tensor, batches: Batches) -> None:
        self.backbone, self.batches = backbone, batches
        self.hidden = torch.cat([backbone.cls[None].to(tokens.dtype), tokens])  # [1 + N, d]
        self.layers = cast("list[EncoderLayer]", list(backbone.layers))
        self.first = self.layers[0].qkv(self.hidden)

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of consecutive steps, batch by batch."""
        zero = torch.zeros(1, dtype=torch.long, device=prefixes.sequence.device)
        sequence = torch.cat([zero, prefixes.sequence + 1])
        sizes = prefixes.sizes
        return self.batches.run(sizes, lambda steps: self._logits(sequence, sizes[steps] + 1))

    def _logits(self, sequence: Tensor, sizes: Tensor) -> Tensor:
        """Logits ``[b, C]`` of the first n entries of the sequence (CLS first), n in ``sizes``."""
        longest = int(sizes.max())
        sequence = sequence[:longest]
        present = torch.arange(longest, device=sizes.device)[None, :] < sizes[:, None]  # [b, L]
        keys = None if bool(present.all()) else present
        hidden = self.hidden[sequence].expand(len(sizes), -1, -1)  # [b, L, d]
        for number, layer in enumerate(self.layers[:-1]):
            if number == 0:
                q, k, v = (part[:, sequence].expand(len(sizes), -1, -1, -1) for part in self.first)
            else:
                q, k, v = layer.qkv(hidden)
            hidden = hidden + layer.attend(q, k, v, keys)
            hidden = hidden + layer.feed_forward(hidden)
        return self.backbone.readout(self.layers[-1].first(hidden, present))
