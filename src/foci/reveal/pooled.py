"""Pooling classifiers: every count from one pass over the tiles."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.layers.softmax_pooling import prefix_pool
from foci.backbones.models._pooled import PooledBackbone
from foci.reveal.prefixes import Nested


class PooledReveal:
    """Attention logits and pooled values of a bag, computed once and summed in any order."""

    def __init__(self, backbone: PooledBackbone, tokens: Tensor) -> None:
        project, self.read = backbone.split()
        self.dtype = tokens.dtype
        self.logits = backbone.attend(tokens).double()
        self.values = project(backbone.values(tokens)).double()

    def steps(self, nested: Nested) -> Iterator[tuple[slice, Tensor]]:
        """Logits of all steps at once."""
        order = nested.sequence[: int(nested.sizes.max())]
        pooled = prefix_pool(self.logits[order], self.values[order], nested.sizes)
        yield slice(0, len(nested.sizes)), self.read(pooled.to(self.dtype))


class PrefixReveal:
    """A classifier with a closed form of its own."""

    def __init__(self, backbone: Backbone, tokens: Tensor) -> None:
        self.backbone, self.tokens = backbone, tokens

    def steps(self, nested: Nested) -> Iterator[tuple[slice, Tensor]]:
        """Logits of all steps at once."""
        order = nested.sequence[: int(nested.sizes.max())]
        yield slice(0, len(nested.sizes)), self.backbone.prefixes(self.tokens[order], nested.sizes)
