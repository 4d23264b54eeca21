"""Attention and values of one bag, computed once for its curves, single tiles and searches."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from foci.backbones.layers.softmax_pooling import RISE, always_in, prefix_pool
from foci.backbones.models._pooled import PooledBackbone

_MOST_TERMS = 2**22
"""Numbers of weighted values that are kept per bag (32 MiB); a larger bag is summed in blocks."""


class PooledTiles:
    r"""One bag of a pooling classifier, tile by tile, in float64.

    Tiles are projected through the affine start of the readout once
    (:meth:`PooledBackbone.split`), and every order sums the same weighted values

    .. math:: e^{a_i - m} v_i, \qquad m = \max_j a_j

    Attributes:
        attention: ``[N, R]`` attention logits.
        values: ``[N, 1 or R, dv]`` what is pooled.
        dtype: Of the classifier, in which its readout computes.
        plus_one: Whether the softmax has 1 added to its denominator.

    Args:
        backbone: The classifier.
        tokens: ``[N, d]`` of one bag.
    """

    def __init__(self, backbone: PooledBackbone, tokens: Tensor) -> None:
        project, self._readout = backbone.split()
        self.dtype, self.plus_one = tokens.dtype, backbone.plus_one
        self.attention = backbone.attend(tokens).double()
        self.values = project(backbone.values(tokens)).double()

    def read(self, pooled: Tensor) -> Tensor:
        """Pooled values ``[..., R, dv]`` to logits ``[..., C]``."""
        return self._readout(pooled.to(self.dtype))

    def pooled(self, sequence: Tensor, sizes: Tensor) -> Tensor:
        """Pooled values ``[J, R, dv]`` of the first ``sizes`` tiles of a sequence, in float64.

        The sums run in the order of the sequence. Tiles before the smallest count (a deletion
        leaves many) are in every sum, and enter it as one product.

        Args:
            sequence: ``[N]`` tile indices.
            sizes: ``[J]`` counts from 1 to N.
        """
        first, last = always_in(sizes), int(sizes.max())
        terms = self._terms
        if terms is None or self._rise(sequence[0]) >= RISE:
            return prefix_pool(self.attention, self.values, sizes, sequence, plus_one=self.plus_one)
        sums = terms.index_select(0, sequence[first:last])
        if first:
            inside = terms.new_ones(len(terms)).index_fill_(0, sequence[first:], 0.0)
            sums[0] += (inside @ terms.flatten(1)).view_as(sums[0])
        sums = sums.cumsum_(0).index_select(0, sizes - 1 - first)
        return sums[..., :-1] / sums[..., -1:]

    @cached_property
    def _terms(self) -> Tensor | None:
        """Weighted values and, in the last column, their weights, ``[N, R, dv + 1]``."""
        size = self.attention.numel() * (self.values.shape[-1] + 1)
        if self.plus_one or size > _MOST_TERMS:
            return None
        weights = torch.exp(self.attention - self._peaks).unsqueeze(-1)
        return torch.cat([weights * self.values, weights], dim=-1)

    @cached_property
    def _peaks(self) -> Tensor:
        """Largest attention logit of every row, ``[R]``."""
        return self.attention.amax(dim=0)

    def _rise(self, tile: Tensor) -> float:
        """How far the largest attention logit of any row lies above that of a tile."""
        return float((self._peaks - self.attention[tile]).amax())
