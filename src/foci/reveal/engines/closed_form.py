"""Curves in closed form, for pooling classifiers: every count from one pass over the tiles."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.layers.softmax_pooling import prefix_pool, prefix_pools
from foci.backbones.models._pooled import PooledBackbone
from foci.reveal.prefixes import Prefixes


class PooledReveal:
    """Softmax pooling over the first k tiles, for all k at once, by cumulative sums."""

    def __init__(self, backbone: PooledBackbone, tokens: Tensor) -> None:
        project, self.read = backbone.split()
        self.dtype, self.plus_one = tokens.dtype, backbone.plus_one
        self.logits = backbone.attend(tokens).double()
        self.values = project(backbone.values(tokens)).double()

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of all steps at once."""
        pooled = prefix_pool(
            self.logits, self.values, prefixes.sizes, prefixes.sequence, plus_one=self.plus_one
        )
        yield slice(0, len(prefixes.sizes)), self.read(pooled.to(self.dtype))

    def several(self, sequences: Tensor, sizes: Tensor) -> Iterator[Tensor]:
        """Logits ``[J, C]`` of the first ``sizes`` tiles of every sequence ``[O, N]``."""
        every = prefix_pools(self.logits, self.values, sizes, sequences, plus_one=self.plus_one)
        for pooled in every:
            yield self.read(pooled.to(self.dtype))


class PrefixReveal:
    """A backbone whose ``prefixes`` method gives every count itself."""

    def __init__(self, backbone: Backbone, tokens: Tensor) -> None:
        self.backbone, self.tokens = backbone, tokens

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of all steps at once."""
        order = prefixes.sequence[: int(prefixes.sizes.max())]
        logits = self.backbone.prefixes(self.tokens[order], prefixes.sizes)
        yield slice(0, len(prefixes.sizes)), logits
