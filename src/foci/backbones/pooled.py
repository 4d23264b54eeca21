"""Classifiers whose tiles meet only in a softmax-weighted sum."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from foci.backbones.contract import Backbone
from foci.backbones.pooling import pool, prefix_pool, softmax_weights


class PooledBackbone(Backbone):
    """``logits = readout( sum_i softmax(attend(tokens))_i * values(tokens)_i )``.

    A subclass says how tiles are scored (``attend``), what is summed (``values``) and what
    happens to the sum (``readout``); the full bag, padded batches, gates and the closed form over
    prefixes all follow from these three.
    """

    @abstractmethod
    def attend(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to attention logits ``[..., N, R]``."""

    def values(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to what is pooled, ``[..., N, 1 or R, dv]``."""
        return tokens.unsqueeze(-2)

    @abstractmethod
    def readout(self, pooled: Tensor) -> Tensor:
        """Pooled values ``[..., R, dv]`` to logits ``[..., C]``."""

    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`."""
        weights = softmax_weights(self.attend(tokens), mask, gate)
        return self.readout(pool(weights, self.values(tokens)))

    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        """See :meth:`Backbone.prefixes`; sums in float64, readout in the model's own dtype."""
        if ks is None:
            ks = torch.arange(1, len(tokens) + 1, device=tokens.device)
        pooled = prefix_pool(self.attend(tokens), self.values(tokens), ks)
        return self.readout(pooled.to(tokens.dtype))

    def scores(self, tokens: Tensor) -> Tensor:
        """Attention logits before the softmax, averaged over the rows."""
        return self.attend(tokens).mean(dim=-1)
