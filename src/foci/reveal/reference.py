"""The slow way, which everything else must equal: one forward pass per count."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from foci.backbones import Backbone
from foci.reveal.prefixes import Nested


class ReferenceReveal:
    """Forwards the features of every subset alone, in bag order."""

    def __init__(self, backbone: Backbone, features: Tensor) -> None:
        self.backbone, self.features = backbone, features

    def steps(self, nested: Nested) -> Iterator[tuple[slice, Tensor]]:
        """Logits ``[1, C]`` of one step after the other."""
        for step in range(len(nested.sizes)):
            logits = self.backbone(self.features[nested.subset(step)])
            yield slice(step, step + 1), logits.unsqueeze(0)
