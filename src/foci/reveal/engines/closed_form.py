"""Curves in closed form, for pooling classifiers: every count from one pass over the tiles."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from foci.backbones import Backbone
from foci.reveal.engines.pooled_tiles import PooledTiles
from foci.reveal.prefixes import Prefixes


class PooledReveal:
    """Softmax pooling over the first k tiles, for all k at once, by cumulative sums."""

    def __init__(self, tiles: PooledTiles) -> None:
        self.tiles = tiles

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of all steps at once."""
        pooled = self.tiles.pooled(prefixes.sequence, prefixes.sizes)
        yield slice(0, len(prefixes.sizes)), self.tiles.read(pooled)


class PrefixReveal:
    """A backbone whose ``prefixes`` method gives every count itself."""

    def __init__(self, backbone: Backbone, tokens: Tensor) -> None:
        self.backbone, self.tokens = backbone, tokens

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of all steps at once."""
        order = prefixes.sequence[: int(prefixes.sizes.max())]
        logits = self.backbone.prefixes(self.tokens[order], prefixes.sizes)
        yield slice(0, len(prefixes.sizes)), logits
