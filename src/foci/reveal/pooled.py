r"""Sets of tiles: for pooling classifiers all prefixes of many orders, or all choices of one tile.

Prefixes are running sums, see :func:`foci.backbones.attention.prefix_pool`. For one tile more or
fewer, let a set of tiles have, in one attention row, the mass :math:`Z = \sum_j e^{a_j}` and the
pooled value :math:`z`. Adding the tile i gives

.. math:: z_{+i} = z + \alpha_i\,(v_i - z), \qquad
   \alpha_i = \frac{e^{a_i}}{Z + e^{a_i}} = \sigma(a_i - \log Z)

and removing one of its tiles gives

.. math:: z_{-i} = \frac{Z z - e^{a_i} v_i}{Z - e^{a_i}} = z - \frac{w_i}{1 - w_i}\,(v_i - z),
   \qquad w_i = e^{a_i - \log Z}.

Only :math:`\log Z` is kept, so no logit is too large or too small. An empty set has
:math:`\log Z = -\infty`, and adding to it gives the tile alone. The removal cancels where one tile
carries nearly all the weight; in each row that can be one tile only, and it gets a softmax over
the others instead. With softmax-plus-one every set has one more tile, of logit 0 and value 0.

Any other classifier forwards every subset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeAlias, TypeGuard

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from foci.backbones import Backbone
from foci.backbones.attention import (
    RISE,
    always_in,
    pool,
    prefix_pool,
    softmax_weights,
    with_empty_tile,
)
from foci.backbones.base import declared
from foci.backbones.models._pooled import PooledBackbone
from foci.reveal.engines import Batches, Prefixes

BUDGET = 16_384
"""Most tokens forwarded at once by default; bounds the memory."""

_MOST_TERMS = 2**22
"""Numbers of weighted values that are kept per bag (32 MiB); a larger bag is summed in blocks."""

_SUMMED_AT_ONCE = 2**18
"""Numbers of running sums that are computed at once (2 MiB), so that they stay in the cache."""

_HEAVY = 0.75
_CANCELS = 1e-6
"""Share of the weight left after a removal below which it is summed and not subtracted."""

_TILES_AT_ONCE = 4096
_NUMBERS_AT_ONCE = 2**22


def pools(backbone: Backbone) -> TypeGuard[PooledBackbone]:
    """Whether :class:`PooledTiles` computes what the classifier itself would answer."""
    own = declared(backbone, "pooling") and declared(backbone, "prefix-sums")
    return isinstance(backbone, PooledBackbone) and own


class PooledTiles:
    r"""One bag of a pooling classifier, tile by tile: sums in float64, readout in its own dtype.

    Tiles are projected through the affine start of the readout once
    (:meth:`PooledBackbone.split`), and every order sums the same weighted values

    .. math:: e^{a_i - m} v_i, \qquad m = \max_j a_j

    so that cumulative sums give the softmax pooling over the first k tiles for all k at once.

    Attributes:
        attention: ``[N, R]`` attention logits.
        values: ``[N, 1 or R, dv]`` what is pooled.
        dtype: Of the classifier, in which its readout computes.
        plus_one: Whether the softmax has 1 added to its denominator.

    Args:
        tokens: ``[N, d]``, or blocks of them, of which one at a time is held.
    """

    def __init__(self, backbone: PooledBackbone, tokens: Tensor | Iterable[Tensor]) -> None:
        project, self._readout = backbone.split()
        self.plus_one = backbone.plus_one
        attention, values = [], []
        for block in [tokens] if isinstance(tokens, Tensor) else tokens:
            self.dtype = block.dtype
            attention.append(backbone.attend(block).double())
            values.append(project(backbone.values(block)).double())
        self.attention, self.values = torch.cat(attention), torch.cat(values)

    def read(self, pooled: Tensor) -> Tensor:
        """Pooled values ``[..., R, dv]`` to logits ``[..., C]``."""
        return self._readout(pooled.to(self.dtype))

    def logits(self, prefixes: Prefixes) -> Tensor:
        """See :class:`~foci.reveal.engines.PrefixLogits`."""
        return self.logits_of(prefixes.sequence[None], prefixes.sizes)[0]

    def logits_of(self, sequences: Tensor, sizes: Tensor) -> Tensor:
        """Logits ``[O, J, C]`` of the first ``sizes`` tiles ``[J]`` of sequences ``[O, N]``.

        The sizes rise, or fall where tiles are deleted. Sums run in the order of the sequence.
        """
        falling = bool(sizes[0] > sizes[-1])  # a few logits are turned round, not all sums
        asked = sizes.flip(0) if falling else sizes
        at_once = 1
        if self._terms is not None and not self._vanishes(sequences[:, 0]):
            at_once = max(1, _SUMMED_AT_ONCE // (int(asked[-1]) * self._terms[0].numel()))
        blocks = torch.split(sequences, at_once)
        # order by order: a readout of more rows may round another way
        each = [self.read(pooled) for some in blocks for pooled in self._pooled(some, asked)]
        logits = torch.stack(each)
        return logits.flip(1) if falling else logits

    def _vanishes(self, tiles: Tensor) -> bool:
        """Whether one of these tiles has no weight left relative to the largest one."""
        return float((self._peaks - self.attention[tiles]).amax()) >= RISE

    def _pooled(self, sequences: Tensor, sizes: Tensor) -> Tensor:
        """Pooled values ``[O, J, R, dv]`` of the first ``sizes`` tiles, which rise, in float64.

        Tiles before the smallest of the sizes (a deletion leaves many) are in every sum, and enter
        it as one product.
        """
        terms = self._terms
        if terms is None or self._vanishes(sequences[:, 0]):
            every = (self.attention, self.values, sizes)
            each = [prefix_pool(*every, own, plus_one=self.plus_one) for own in sequences]
            return torch.stack(each)
        first, last = always_in(sizes[:1]), int(sizes[-1])
        tiles = sequences[:, first:last]
        sums = terms.index_select(0, tiles.flatten()).view(*tiles.shape, *terms.shape[1:])
        if first:
            for own, sequence in zip(sums, sequences, strict=True):
                inside = terms.new_ones(len(terms)).index_fill_(0, sequence[first:], 0.0)
                own[0] += (inside @ terms.flatten(1)).view_as(own[0])
        sums = sums.cumsum_(1)
        if len(sizes) < sums.shape[1]:
            sums = sums.index_select(1, sizes - 1 - first)
        return sums[..., :-1] / sums[..., -1:]

    def without_first(self, orders: Tensor, ks: Tensor) -> Tensor:
        """Logits ``[O * K, C]`` of the bag without the first k tiles of orders ``[O, >= max k]``.

        The counts increase from at least 1. What is removed is subtracted from the sum over all
        tiles. Where hardly any weight would be left, so that this cancels, the remaining tiles are
        summed instead.
        """
        peaks = self._peaks.clamp_min(0.0) if self.plus_one else self._peaks
        every = torch.arange(len(self.attention), device=orders.device)
        blocks = torch.split(every, _TILES_AT_ONCE)
        total = torch.stack([self._weighted(some, peaks).sum(dim=0) for some in blocks]).sum(dim=0)
        if self.plus_one:
            total[:, -1] += torch.exp(-peaks)
        first = orders[:, : int(ks[-1])]
        if self._terms is None:
            gone = torch.cat([self._weighted(one, peaks).cumsum(0)[ks - 1] for one in first])
        else:
            begins = torch.cat([ks.new_zeros(1), ks[:-1]])
            begins = begins + first.shape[1] * torch.arange(len(first), device=ks.device)[:, None]
            gone = embedding_bag(
                first.flatten(), self._terms.flatten(1), begins.flatten(), mode="sum"
            )
            gone = gone.view(len(first), len(ks), -1).cumsum(dim=1).view(-1, *total.shape)
        sums = total - gone
        light = (sums[..., -1] < _CANCELS * total[:, -1]).any(dim=-1)
        logits = self.read(sums[..., :-1] / sums[..., -1:])
        for row in light.nonzero().flatten().tolist():
            left = torch.ones_like(every, dtype=torch.bool)
            left[first[row // len(ks), : int(ks[row % len(ks)])]] = False
            weights = softmax_weights(self.attention[left], plus_one=self.plus_one)
            logits[row] = self.read(pool(weights, self.values[left]))
        return logits

    def _weighted(self, tiles: Tensor, peaks: Tensor) -> Tensor:
        """Weighted values of some tiles, ``[n, R, dv + 1]``; in the last column, their weights."""
        if self._terms is not None:
            return self._terms[tiles]
        weights = torch.exp(self.attention[tiles] - peaks).unsqueeze(-1)
        return torch.cat([weights * self.values[tiles], weights], dim=-1)

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

    def full(self) -> Tensor:
        """Logits ``[C]`` of all tiles."""
        return self.read(self._pool(self._every_tile())[1])

    def weights(self) -> Tensor:
        """Attention weights ``[N, R]`` of all tiles."""
        return softmax_weights(self.attention, plus_one=self.plus_one)

    def mean_attention(self) -> Tensor:
        """Attention logits ``[N]``, averaged over the rows in the model's own dtype."""
        return self.attention.to(self.dtype).mean(dim=-1)

    def adding(self, present: Tensor, tiles: Tensor) -> Tensor:
        """Logits ``[n, C]`` of a set, ``[N]`` bool, plus each of ``tiles`` outside it.

        The set may be empty.
        """
        if not self.plus_one and not bool(present.any()):  # the tile's value, whatever its weight
            rows = self.attention.shape[1]
            at_once = max(1, _NUMBERS_AT_ONCE // (rows * self.values.shape[-1]))
            chunks = torch.split(tiles, at_once)
            alone = [self.read(self.values[chunk].expand(-1, rows, -1)) for chunk in chunks]
            return torch.cat(alone)
        log_mass, pooled = self._pool(present)
        return self._mix(pooled, tiles, torch.sigmoid(self.attention[tiles] - log_mass))

    def removing(self, present: Tensor, tiles: Tensor) -> Tensor:
        """Logits ``[n, C]`` of a set of two tiles or more, minus each of ``tiles`` in it."""
        log_mass, pooled = self._pool(present)
        weights = torch.exp(self.attention[tiles] - log_mass)  # [n, R]
        heavy = weights > _HEAVY
        shares = (weights / (weights - 1)).masked_fill(heavy, 0.0)
        logits = self._mix(pooled, tiles, shares)
        affected = heavy.any(dim=-1).nonzero().squeeze(-1)
        if len(affected):
            rest = self.attention.masked_fill(~present.unsqueeze(-1), -torch.inf)
            rest[tiles[affected]] = rest[tiles[affected]].masked_fill(heavy[affected], -torch.inf)
            weights = softmax_weights(rest, plus_one=self.plus_one)
            others = pool(weights, self.values)  # [R, dv]
            mixed = torch.lerp(pooled, self.values[tiles[affected]], shares[affected].unsqueeze(-1))
            pooled = torch.where(heavy[affected].unsqueeze(-1), others, mixed)
            logits[affected] = self.read(pooled)
        return logits

    @cached_property
    def slopes(self) -> Tensor:
        """Gradient of each full-bag logit in the pooled value of each row, ``[C, R, dv]``."""
        with torch.inference_mode(False), torch.enable_grad():
            pooled = self._pool(self._every_tile())[1].clone().requires_grad_()
            slopes = [
                torch.autograd.grad(logit, pooled, retain_graph=True)[0]
                for logit in self.read(pooled)
            ]
        return torch.stack(slopes)

    def row_shares(self) -> Tensor:
        """Share of each attention row in the gradient of each full-bag logit, ``[C, R]``.

        The shares of a class sum to 1.
        """
        moves: Tensor = torch.linalg.vector_norm(self.slopes, dim=-1)
        dead = moves.sum(dim=-1, keepdim=True) == 0
        moves = moves.masked_fill(dead, 1.0)
        return moves / moves.sum(dim=-1, keepdim=True)

    def _pool(self, present: Tensor) -> tuple[Tensor, Tensor]:
        """Logarithm of the mass ``[R]``, and pooled values ``[R, dv]``."""
        attention = self.attention[present]
        weights = softmax_weights(attention, plus_one=self.plus_one)
        every = with_empty_tile(attention) if self.plus_one else attention
        return torch.logsumexp(every, dim=0), pool(weights, self.values[present])

    def _mix(self, pooled: Tensor, tiles: Tensor, shares: Tensor) -> Tensor:
        """Logits where a share ``[n, R]`` of the pooled value is replaced by the tile's own."""
        at_once = max(1, _NUMBERS_AT_ONCE // pooled.numel())
        chunks = zip(torch.split(tiles, at_once), torch.split(shares, at_once), strict=True)
        return torch.cat(
            [
                self.read(torch.lerp(pooled, self.values[chunk], share.unsqueeze(-1)))
                for chunk, share in chunks
            ]
        )

    def _every_tile(self) -> Tensor:
        return torch.ones(len(self.values), dtype=torch.bool, device=self.values.device)


class ForwardedCandidates:
    """Forwards the tokens ``[N, >= d]`` of every subset, in bag order, several per batch.

    At most ``budget`` tokens are forwarded at once; a larger subset is forwarded on its own.
    """

    def __init__(self, backbone: Backbone, tokens: Tensor, budget: int = BUDGET) -> None:
        self.backbone, self.tokens, self.budget = backbone, tokens, budget

    def full(self) -> Tensor:
        """As :class:`PooledTiles`."""
        return self.backbone.aggregate(self.tokens.unsqueeze(0))[0]

    def adding(self, present: Tensor, tiles: Tensor) -> Tensor:
        """As :class:`PooledTiles`."""
        members = present.nonzero().squeeze(-1)

        def grown(chunk: Tensor) -> Tensor:
            subset = torch.cat([members.expand(len(chunk), -1), chunk.unsqueeze(-1)], dim=-1)
            return subset.sort(dim=-1).values

        return self._forward(grown, tiles, len(members) + 1)

    def removing(self, present: Tensor, tiles: Tensor) -> Tensor:
        """As :class:`PooledTiles`."""
        members = present.nonzero().squeeze(-1)

        def shrunk(chunk: Tensor) -> Tensor:
            others = members != chunk.unsqueeze(-1)
            return members.expand(len(chunk), -1)[others].view(len(chunk), -1)

        return self._forward(shrunk, tiles, len(members) - 1)

    def _forward(self, subsets: Callable[[Tensor], Tensor], tiles: Tensor, size: int) -> Tensor:
        batches = Batches(self.budget, self.budget, grows=self.tokens.is_cuda)
        return batches.run(
            torch.full((len(tiles),), size),
            lambda steps: self.backbone.aggregate(self.tokens[subsets(tiles[steps])]),
        )


Candidates: TypeAlias = PooledTiles | ForwardedCandidates
"""Logits of a set of tiles with one tile more or fewer."""
