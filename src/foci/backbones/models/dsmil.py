"""DSMIL: attention to the critical tile of every class (Li, Li and Eliceiri, 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.attention import pool, prefix_pool, projection, softmax_weights
from foci.backbones.base import (
    Backbone,
    Batch,
    Capabilities,
    Objective,
    architecture,
    declares,
    objective_of,
    preset,
)
from foci.backbones.models._pooled import POOLING
from foci.errors import FociError
from foci.outputs import Output

Value = Literal["token", "linear", "relu"]

_CRITICAL_AT_ONCE = 64
"""Critical tiles whose attention to all tiles is summed at once; bounds the memory."""


@architecture("dsmil")
class DSMIL(Backbone):
    r"""A tile classifier names the critical tile of every output; tiles are weighted by likeness.

    .. math:: s_{ki} = c_k^\top h_i, \quad m_k = \arg\max_i s_{ki}, \quad
       a_{ki} = \frac{q(h_i) \cdot q(h_{m_k})}{\sqrt{d_q}}, \quad
       z_k = \sum_i \mathrm{softmax}(a_k)_i\, v(h_i), \quad
       u = \sum_k F_k z_k + b

    with :math:`h_i = x_i` as published. The K outputs :math:`u` are independent sigmoids: the odds
    that each class is present. FOCI's classes exclude each other, so the class probabilities are
    those sigmoids under the condition that exactly one class is present,

    .. math:: p_k \propto \sigma(u_k) \prod_{j \ne k} (1 - \sigma(u_j)) \propto e^{u_k},

    a softmax of the outputs. With a negative class, which has no output of its own, the condition
    is *at most* one, and the negative class has the logit 0. One output and a negative class thus
    keep the published probability :math:`\sigma(u)`.

    The critical tile of a growing set changes only where a tile scores higher than all before it.
    Until the next such tile the attention logits are fixed, and running sums give every count. The
    critical tile is found in float64, so that batch sizes do not decide between two tiles.

    MIL-Lab normalises :math:`z_k` by a LayerNorm (``norm``), and it and torchmil predict
    :math:`(u_k + s_{k m_k}) / 2`, the mean of both streams (``average``).

    Native score: :math:`a_{ki}`, attention to the critical tile as in the authors' heat maps, in
    the row of the largest output. Trained with :class:`DualStream`.

    Args:
        n_classes: Number of classes, the negative one included.
        d: Token width; None for no projection (``h = x``, ``d = d_in``, as published).
        negative: Whether one class is the absence of all others, as in the authors' own labels:
            class 0 of two, the last one of more. It has no output.
        query: Width :math:`d_q` of a query.
        query_hidden: Width inside ``Linear - ReLU - Linear - tanh``; None for a linear query.
        value: What is pooled: the ``"token"`` itself, a ``"linear"`` map of it, or that through
            ``"relu"``.
        norm: Whether the pooled tokens go through a LayerNorm.
        average: Whether the outputs are the mean of bag and best tile.
        projection_bias, projection_activation, projection_layers, dropout: See
            :func:`~foci.backbones.attention.projection`.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None = None,
        negative: bool = False,
        query: int = 128,
        query_hidden: int | None = 128,
        value: Value = "token",
        norm: bool = False,
        average: bool = False,
        projection_bias: bool = True,
        projection_activation: str = "relu",
        projection_layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        if value not in get_args(Value):
            raise FociError("value", f"is {value!r}", f"choose one of {', '.join(get_args(Value))}")
        width = d_in if d is None else d
        super().__init__(d_in, n_classes, d_token=width)
        self.negative, self.homogeneous, self.average = negative, d is None, average
        self.n_outputs = n_classes - negative
        self.projection = projection(
            d_in,
            d,
            bias=projection_bias,
            dropout=dropout,
            activation=projection_activation,
            layers=projection_layers,
        )
        self.tile_classifier = nn.Linear(width, self.n_outputs)
        self.query: nn.Module = (
            nn.Linear(width, query)
            if query_hidden is None
            else nn.Sequential(
                nn.Linear(width, query_hidden), nn.ReLU(), nn.Linear(query_hidden, query), nn.Tanh()
            )
        )
        last = nn.ReLU() if value == "relu" else nn.Identity()
        self.value: nn.Module = (
            nn.Identity() if value == "token" else nn.Sequential(nn.Linear(width, width), last)
        )
        self.norm = nn.LayerNorm(width) if norm else None
        self.head = nn.Linear(self.n_outputs * width, self.n_outputs)

    @property
    def capabilities(self) -> Capabilities:
        """As attention pooling."""
        return replace(POOLING, homogeneous=self.homogeneous)

    def attend(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """Attention logits ``[..., N, K]`` to the critical tile among those present."""
        ranks = self._ranks(tokens, mask, gate)
        queries: Tensor = self.query(tokens)
        critical = queries.take_along_dim(ranks.argmax(dim=-2).unsqueeze(-1), dim=-2)
        return queries @ critical.transpose(-1, -2) / math.sqrt(queries.shape[-1])

    def outputs(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """Logits ``[..., K]`` of the independent sigmoids, as the authors' code returns them."""
        weights = softmax_weights(self.attend(tokens, mask, gate), mask, gate)
        pooled = pool(weights, self.value(tokens).unsqueeze(-2))
        if self.norm is not None:
            pooled = self.norm(pooled)
        outputs: Tensor = self.head(pooled.flatten(start_dim=-2))
        if self.average:
            best = self._ranks(tokens, mask, gate).argmax(dim=-2, keepdim=True)
            tiles = self.tile_classifier(tokens).take_along_dim(best, dim=-2).squeeze(-2)
            outputs = (outputs + tiles) / 2
        return outputs

    def classes(self, outputs: Tensor) -> Tensor:
        """Outputs ``[..., K]`` to class logits ``[..., C]``: 0 for a negative class."""
        if not self.negative:
            return outputs
        none = torch.zeros_like(outputs[..., :1])
        ordered = (none, outputs) if self.n_outputs == 1 else (outputs, none)
        return torch.cat(ordered, dim=-1)

    @declares("pooling")
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`; a tile whose gate is 0 cannot be critical."""
        return self.classes(self.outputs(tokens, mask, gate))

    @declares("prefix-sums")
    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        """See :meth:`Backbone.prefixes`; sums in float64, the rest in the model's own dtype."""
        if ks is None:
            ks = torch.arange(1, len(tokens) + 1, device=tokens.device)
        tokens = tokens[: int(ks.max())]
        critical = torch.cummax(self._tile_scores(tokens), dim=0).indices[ks - 1]  # [J, K]
        queries, values = self.query(tokens), self.value(tokens)
        if self.norm is None:
            rows = self.head.weight.view(self.n_outputs, self.n_outputs, -1).unbind(dim=1)
            outputs = self.head.bias.double() + sum(
                _prefix_sums(queries, values @ row.T, ks, critical[:, k])
                for k, row in enumerate(rows)
            )
            outputs = outputs.to(tokens.dtype)
        else:
            own = [_prefix_sums(queries, values, ks, tiles) for tiles in critical.unbind(dim=1)]
            pooled = self.norm(torch.stack(own, dim=1).to(tokens.dtype))
            outputs = self.head(pooled.flatten(start_dim=1))
        if self.average:
            tiles = self.tile_classifier(tokens).take_along_dim(critical, dim=0)
            outputs = (outputs + tiles) / 2
        return self.classes(outputs)

    def scores(self, tokens: Tensor) -> Tensor:
        """Attention logits to the critical tile of the largest output of *all* tokens."""
        return self.attend(tokens)[:, int(self.outputs(tokens).argmax())]

    def _ranks(self, tokens: Tensor, mask: Tensor | None, gate: Tensor | None) -> Tensor:
        """Scores by which the tiles compete, ``-inf`` for those that are not present."""
        present = mask if gate is None else (gate > 0) if mask is None else mask & (gate > 0)
        ranks = self._tile_scores(tokens)
        return ranks if present is None else ranks.masked_fill(~present.unsqueeze(-1), -torch.inf)

    @torch.no_grad()
    def _tile_scores(self, tokens: Tensor) -> Tensor:
        """What decides the critical tile, in float64 ``[..., N, K]``."""
        weight, bias = self.tile_classifier.weight.double(), self.tile_classifier.bias.double()
        return F.linear(tokens.double(), weight, bias)


def _prefix_sums(queries: Tensor, values: Tensor, ks: Tensor, critical: Tensor) -> Tensor:
    """Softmax-weighted means of the first k values, by attention to the critical tile of each k.

    From queries ``[N, q]`` and values ``[N, dv]`` in reveal order, counts ``[J]`` and the critical
    tile ``[J]`` among the first k of each, to ``[J, dv]`` in float64.
    """
    found, place = torch.unique(critical, return_inverse=True)
    means = torch.empty(len(ks), values.shape[-1], dtype=torch.float64, device=values.device)
    for start in range(0, len(found), _CRITICAL_AT_ONCE):
        tiles = found[start : start + _CRITICAL_AT_ONCE]
        asked = ((place >= start) & (place < start + len(tiles))).nonzero().squeeze(-1)
        logits = queries @ queries[tiles].T / math.sqrt(queries.shape[-1])  # [N, tiles]
        pooled = prefix_pool(logits, values.unsqueeze(1), ks[asked])  # [asked, tiles, dv]
        means[asked] = pooled.take_along_dim((place[asked] - start)[:, None, None], 1).squeeze(1)
    return means


@objective_of(DSMIL)
class DualStream(Objective):
    r"""Both streams learn which classes are present, each output by a sigmoid of its own.

    .. math:: L = w\,\mathrm{BCE}(u, y) + (1 - w)\,\mathrm{BCE}\big(\max_i s_i,\, y\big)

    with the outputs u of the bag, the tile classifier's scores :math:`s_i`, and y = 1 for the
    label's output and 0 for the others; a negative class has no output, so all are 0. Averaged
    over outputs and bags.

    Args:
        bag_weight: w, a half as published.
    """

    backbone: DSMIL

    def __init__(self, backbone: DSMIL, *, bag_weight: float = 0.5) -> None:
        super().__init__(backbone)
        self.bag_weight = bag_weight

    @classmethod
    def departures(cls, classes: Sequence[str], output: Output) -> tuple[dict[str, Any], str]:
        """See :meth:`Objective.departures`."""
        why = "at 2e-4 it has not learned enough after 20 epochs: it has no projection"
        return {"lr": 1e-3}, why

    def forward(self, batch: Batch) -> Tensor:
        """Weighted loss of both streams."""
        tokens = self.backbone.embed(batch.features)
        outputs = self.backbone.outputs(tokens, batch.mask)
        tiles = self.backbone.tile_classifier(tokens)
        best = tiles.masked_fill(~batch.mask.unsqueeze(-1), -torch.inf).amax(dim=1)
        shift = 1 if self.backbone.negative and self.backbone.n_outputs == 1 else 0
        index = torch.arange(self.backbone.n_outputs, device=outputs.device) + shift
        present = (batch.labels.unsqueeze(-1) == index).to(outputs.dtype)
        return self.named_terms(
            bag=self.bag_weight * F.binary_cross_entropy_with_logits(outputs, present),
            tiles=(1 - self.bag_weight) * F.binary_cross_entropy_with_logits(best, present),
        )


preset("dsmil", "official", DSMIL)
preset("dsmil", "official-negative", DSMIL, negative=True)
