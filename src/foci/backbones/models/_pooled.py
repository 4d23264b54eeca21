"""Shared bases: attention pooling, several attention branches, order-dependent classifiers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from foci.backbones.attention import pool, prefix_pool, softmax_weights, split_head
from foci.backbones.base import Backbone, Capabilities, declared, declares
from foci.errors import FociError
from foci.parts import Parts, Structure

Layer = Callable[[Tensor], Tensor]

POOLING = Capabilities(
    order_free=True, closed_form=True, score="native", gate_sites=("feature", "attention")
)
"""What attention pooling can do; the other classifiers of a set of tiles depart from it."""


class PooledBackbone(Backbone):
    r"""Attention pooling: tiles meet only in a softmax-weighted sum.

    ``logits = readout( sum_i softmax(attend(tokens))_i * values(tokens)_i )``

    The full bag, padded batches, gates and the closed form over prefixes all follow from
    ``embed``, ``attend``, ``values`` and ``readout``. A subclass builds the three modules that
    these use by default,

    .. math:: h_i = \mathrm{projection}(x_i), \quad a_i = \mathrm{attention}(h_i), \quad
       \ell = \mathrm{head}\Big(\sum_i \mathrm{softmax}(a)_i\, h_i\Big),

    or replaces the methods in which it differs.

    Where a readout begins with an affine map, that map may as well come first, because the
    weights of a set of tiles add up to 1:

    .. math:: A \sum_i w_i v_i + b = \sum_i w_i\,(A v_i + b)

    One set of tiles is cheapest when it is pooled first. Many sets of the same tiles are cheapest
    when every tile is projected once and the sums run over fewer numbers. A subclass with another
    readout may therefore give its ``project`` and ``read`` too and decorate all three with
    ``@declares("split-readout")``; one that replaces ``readout`` alone is pooled first.

    Attributes:
        homogeneous: Whether the projection is; see :class:`Capabilities`.
        plus_one: Whether the softmax has 1 added to its denominator. The weights then sum to less
            than 1, and the readout is not split.
    """

    attention: nn.Module
    head: nn.Module
    homogeneous: bool = False
    plus_one: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """Order-free, closed form, native score, gates at both sites."""
        structure = self.structure if declared(self, "parts") else "none"
        return replace(POOLING, homogeneous=self.homogeneous, structure=structure)

    @property
    def structure(self) -> Structure:
        """What ``parts`` gives, by the layers of the head."""
        layers = [type(layer) for layer in split_head(self.head)[1]]
        if layers == [nn.ReLU, nn.Linear] and not self.plus_one:
            return "relu head"
        return "none" if layers else "linear head"

    def attend(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to attention logits ``[..., N, R]``."""
        logits: Tensor = self.attention(tokens)
        return logits

    def values(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to what is pooled, ``[..., N, 1 or R, dv]``."""
        return tokens.unsqueeze(-2)

    @declares("split-readout", "parts")
    def readout(self, pooled: Tensor) -> Tensor:
        """Pooled values ``[..., R, dv]`` to logits ``[..., C]``: the head on the one token."""
        logits: Tensor = self.head(pooled.squeeze(-2))
        return logits

    @declares("split-readout")
    def project(self, values: Tensor) -> Tensor:
        """Values ``[..., 1 or R, dv]`` through the affine start of the readout."""
        projected: Tensor = split_head(self.head)[0](values)
        return projected

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        """The rest: ``read(pool(weights, project(values))) == readout(pool(weights, values))``."""
        logits = projected.squeeze(-2)
        for layer in split_head(self.head)[1]:
            logits = layer(logits)
        return logits

    @declares("parts")
    def parts(self, tokens: Tensor) -> Parts:
        """See :meth:`Backbone.parts`; the affine start of the head on every value."""
        start, _ = split_head(self.head)
        values = self.values(tokens)
        empty = start(torch.zeros_like(values[0])) if self.plus_one else None
        return self.joined(self.attend(tokens), start(values), empty)

    def joined(self, attention: Tensor, projected: Tensor, empty: Tensor | None = None) -> Parts:
        """Parts with this head, of attention ``[N, R]`` and ``project``-ed values."""
        _, rest = split_head(self.head)
        output = None
        if rest:
            last = cast("nn.Linear", rest[-1])
            bias = last.weight.new_zeros(len(last.weight)) if last.bias is None else last.bias
            output = torch.cat([last.weight, bias[:, None]], dim=1)
        return Parts(attention, projected, empty, output)

    def split(self) -> tuple[Layer, Layer]:
        """What to do to the values before the pooling and to the sums after it."""
        if declared(self, "split-readout") and not self.plus_one:
            return self.project, self.read
        return nn.Identity(), self.readout

    @declares("pooling", "parts")
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`."""
        weights = softmax_weights(self.attend(tokens), mask, gate, plus_one=self.plus_one)
        return self.readout(pool(weights, self.values(tokens)))

    @declares("prefix-sums")
    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        """See :meth:`Backbone.prefixes`; sums in float64, the rest in the model's own dtype.

        For one order. Curves come from :class:`~foci.reveal.pooled.PooledTiles`, which shares the
        weighted values of a bag among many orders; this is what checks them, in float64.
        """
        if ks is None:
            ks = torch.arange(1, len(tokens) + 1, device=tokens.device)
        tokens = tokens[: int(ks.max())]
        project, read = self.split()
        projected = project(self.values(tokens))
        pooled = prefix_pool(self.attend(tokens), projected, ks, plus_one=self.plus_one)
        return read(pooled.to(tokens.dtype))

    @declares("mean-attention")
    def scores(self, tokens: Tensor) -> Tensor:
        """Attention logits before the softmax, averaged over the rows."""
        return self.attend(tokens).mean(dim=-1)


# What ACMIL and ASMIL share: several attention branches on bias-free ReLU tokens. Attention rows
# are ordered by branch, then by head. Each branch has a linear classifier beside the slide's.

Score = Literal["logits", "softmax"]


def official_width(d_in: int) -> int:
    """Token width that the authors of ACMIL and ASMIL chose for a feature width: half of it.

    The exception is 128 for 384-d features.

    >>> [official_width(d_in) for d_in in (384, 512, 768, 1024, 1536)]
    [128, 256, 384, 512, 768]
    """
    return 128 if d_in == 384 else d_in // 2


def check_branches(branches: int, score: str) -> None:
    if branches < 1:
        raise FociError("branches", f"{branches} is too few", "choose at least 1")
    if score not in get_args(Score):
        raise FociError("score", f"{score!r} is unknown", 'choose "logits" or "softmax"')


def classify_branches(heads: Iterable[nn.Module], tokens: Tensor) -> Tensor:
    """One token per branch ``[..., K, d]`` to every branch's own logits ``[..., K, C]``."""
    pairs = zip(heads, tokens.unbind(dim=-2), strict=True)
    return torch.stack([classify(token) for classify, token in pairs], dim=-2)


def mean_attention(logits: Tensor, score: Score) -> Tensor:
    """Mean over the rows of the attention logits ``[N, R]``, or of their softmax maps.

    The first is the paper's ranking, the second the official heat map of ACMIL; the two can rank
    tiles differently.
    """
    rows = softmax_weights(logits) if score == "softmax" else logits
    return rows.mean(dim=-1)


class OrderedBackbone(Backbone):
    """Base of order-dependent classifiers: masking forwards the present tiles, in bag order.

    A subclass builds ``projection`` and defines ``classify`` for bags of one length, independently
    for every item; items with equally many tiles run together.
    """

    tile_score: Literal["native", "proxy"]

    @property
    def capabilities(self) -> Capabilities:
        """Order-dependent, no closed form, feature gate only."""
        return Capabilities(
            order_free=False, closed_form=False, score=self.tile_score, gate_sites=("feature",)
        )

    def share(self, tokens: Tensor) -> Tensor:
        """Tokens ``[N, d]`` with whatever else of a tile does not depend on the others.

        It is computed once per bag and given to ``aggregate`` instead of the tokens, by the
        shortcut ``"shared-tokens"``; here, nothing is added.
        """
        return tokens

    @abstractmethod
    def classify(self, tokens: Tensor) -> Tensor:
        """Tokens ``[B, n, d]``, all present, to logits ``[B, C]``."""

    @declares("shared-tokens")
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`; a gate is refused."""
        refuse_gate(self, gate)
        if mask is None:
            mask = torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
        counts = mask.sum(dim=1)
        if bool((counts == 0).any()):
            raise FociError(self.architecture, "was given a bag without tiles", "keep at least one")
        if bool(mask.all()):
            return self.classify(tokens)
        rows, logits = [], []
        for count in sorted(set(counts.tolist())):
            members = (counts == count).nonzero().squeeze(1)
            present = tokens[members][mask[members]]
            rows.append(members)
            logits.append(self.classify(present.view(len(members), count, -1)))
        return torch.cat(logits)[torch.cat(rows).argsort()]


def refuse_gate(backbone: Backbone, gate: Tensor | None) -> None:
    """Refuse an attention gate where tiles have no attention weight."""
    if gate is not None:
        what = "has no attention weight per tile that a gate could multiply"
        raise FociError(backbone.architecture, what, "use the gate site 'feature'")
