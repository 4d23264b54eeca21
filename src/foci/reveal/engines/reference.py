"""Curves by one forward pass per count: slow, and what every other engine is tested against."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from foci.backbones import Backbone
from foci.reveal.prefixes import Prefixes


class ReferenceReveal:
    """Forwards the features of every subset on their own, in bag order."""

    def __init__(self, backbone: Backbone, features: Tensor) -> None:
        self.backbone, self.features = backbone, features

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits ``[1, C]`` of each step in turn."""
        for step in range(len(prefixes.sizes)):
            logits = self.backbone(self.features[prefixes.subset(step)])
            yield slice(step, step + 1), logits.unsqueeze(0)
