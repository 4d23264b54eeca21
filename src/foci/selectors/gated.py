"""A frozen backbone under a gate per tile.

The work is split as in the backbone itself: ``prepare`` is everything that no gate can change, done
once per bag and kept; ``logits`` is the rest, done in every step for the kept and for the dropped
tiles. The full bag needs no gate and is computed once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from foci.backbones.attention import MAX_EXCESS, pool, softmax_weights
from foci.backbones.base import Backbone, GateSite, declared
from foci.backbones.freezing import device_and_dtype
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.models.transmil import TransMIL
from foci.backbones.transformer import EncoderLayer
from foci.errors import FociError
from foci.reveal.pooled import pools

Tiles = Mapping[str, Tensor]
"""Per-tile tensors ``[..., N, ...]`` by name; ``"tokens"`` is always among them."""


class GatedBackbone(ABC):
    """Logits of a backbone whose tiles are gated; one subclass per way to compute them."""

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Everything that ``logits`` needs of the tiles, from features ``[..., N, D]``."""
        return {"tokens": self.backbone.embed(features)}

    @abstractmethod
    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Logits ``[B, C]`` of gated bags.

        Args:
            tiles: Output of ``prepare``, padded to ``[B, N, ...]``.
            mask: ``[B, N]`` bool, True where a tile is real.
            gate: ``[B, N]`` in [0, 1].
        """


def kept_first(kept: Tensor) -> Tensor:
    """Indices ``[B, n]`` of the kept tiles in bag order, n of the row that keeps most.

    A row that keeps fewer is filled up with tiles that it does not keep.
    """
    most = int(kept.sum(dim=-1).max())
    return kept.long().argsort(dim=-1, descending=True, stable=True)[:, :most]


class AttentionGated(GatedBackbone):
    """Gated attention weights, before normalisation: a hard gate *is* removal.

    Where a hard gate needs no gradient, the tiles that it closes are left out altogether.
    """

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Gate the attention."""
        tokens, kept = tiles["tokens"], mask & (gate > 0)
        learned = torch.is_grad_enabled() and gate.requires_grad
        if learned or not bool((gate[kept] == 1).all()) or not bool(kept.any(dim=-1).all()):
            return self.backbone.aggregate(tokens, mask, gate)
        index = kept_first(kept)
        tokens = tokens.take_along_dim(index.unsqueeze(-1), dim=1)
        return self.backbone.aggregate(tokens, kept.gather(1, index))


class PooledAttentionGated(GatedBackbone):
    """Gated softmax pooling: attention logits and values are computed once per bag."""

    backbone: PooledBackbone

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Tokens for the selector head, attention logits and values for the pooling."""
        tokens = self.backbone.embed(features)
        return {
            "tokens": tokens,
            "attention": self.backbone.attend(tokens),
            "values": self.backbone.values(tokens),
        }

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Pool with gated weights."""
        weights = softmax_weights(tiles["attention"], mask, gate, plus_one=self.backbone.plus_one)
        return self.backbone.readout(pool(weights, tiles["values"]))


_IN_FLIGHT = 2**20  # pairs of query and key, over all heads, whose weights are held at once


def gated_attention(q: Tensor, k: Tensor, v: Tensor, gate: Tensor, n_open: int) -> Tensor:
    r"""Attention over gated keys, with the gradient of every gate.

    .. math:: o_i = \sum_j g_j r_{ij} v_j, \qquad
       r_{ij} = \frac{e^{s_{ij}}}{\sum_{j'} g_{j'} e^{s_{ij'}}}, \qquad
       s_{ij} = q_i \cdot k_j / \sqrt{d_h}

    A closed key, :math:`g_j = 0`, plays no part in the value. Its gate has a gradient nevertheless,
    by the same formula as an open one:

    .. math:: \frac{\partial L}{\partial g_j} = \sum_i r_{ij}\, \langle o_i', v_j - o_i \rangle
       = \Big\langle v_j, \sum_i r_{ij} o_i' \Big\rangle - \sum_i r_{ij} \langle o_i', o_i \rangle,
       \qquad o_i' = \frac{\partial L}{\partial o_i}

    The output comes from the fused kernel, which keeps no weights. The backward pass computes them
    again, for some queries at a time, with the cap of
    :func:`~foci.backbones.attention.softmax_weights`.

    Args:
        q: Queries ``[1, heads, n_queries, d / heads]``.
        k: Keys ``[1, heads, n, d / heads]``, open ones first.
        v: Values, like the keys. Closed keys and values get no gradient.
        gate: ``[n]``, above 0 for the first ``n_open`` and 0 for the others.
        n_open: How many keys are open; at least 1.

    Returns:
        ``[1, heads, n_queries, d / heads]``.

    >>> one, two = torch.ones(1, 1, 1, 1), torch.tensor([[[[1.0], [5.0]]]])
    >>> gate = torch.tensor([1.0, 0.0], requires_grad=True)
    >>> gathered = gated_attention(one, torch.zeros_like(two), two, gate, n_open=1)
    >>> gathered.item(), torch.autograd.grad(gathered.sum(), gate)[0].tolist()
    (1.0, [0.0, 4.0])
    """
    gathered: Tensor = _GatedAttention.apply(q, k, v, gate, n_open)  # type: ignore[no-untyped-call]
    return gathered


class _GatedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, gate: Tensor, n_open: int) -> Tensor:
        opened = gate[:n_open]
        shift = None if bool((opened == 1).all()) else opened.log().view(1, 1, 1, -1)
        out = F.scaled_dot_product_attention(
            q, k[..., :n_open, :], v[..., :n_open, :], attn_mask=shift
        )
        ctx.save_for_backward(q, k, v, gate, out)
        ctx.n_open = n_open
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (q, k, v, gate, out), n_open = ctx.saved_tensors, ctx.n_open
        scale, inside = q.shape[-1] ** -0.5, any(ctx.needs_input_grad[:3])
        q = q * scale
        # One more coordinate, 1 in every value, takes <o', o> along through every product.
        v = F.pad(v, (0, 1), value=1.0)
        grad = torch.cat([grad, -(grad * out).sum(dim=-1, keepdim=True)], dim=-1)
        of_q, of_k, of_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        opened, open_v, open_of_k = gate[:n_open, None], v[..., :n_open, :], of_k[..., :n_open, :]
        keys = opened * k[..., :n_open, :] * scale
        size = max(1, _IN_FLIGHT // (q.shape[-3] * len(gate)))
        for start in range(0, q.shape[-2], size):
            rows = slice(start, start + size)
            queries = q[..., rows, :]
            raised = queries @ k.transpose(-1, -2)
            raised -= raised[..., :n_open].amax(dim=-1, keepdim=True)
            raised[..., n_open:].clamp_(max=MAX_EXCESS)
            raised.exp_()
            total = (raised @ gate).clamp_min(torch.finfo(raised.dtype).tiny).unsqueeze(-1)
            pull = grad[..., rows, :] / total
            of_v += raised.transpose(-1, -2) @ pull
            if inside:
                slope = raised[..., :n_open].mul_(pull @ open_v.transpose(-1, -2))
                of_q[..., rows, :] = slope @ keys
                open_of_k += slope.transpose(-1, -2) @ queries
        of_gate = (v * of_v).sum(dim=(0, 1, 3))
        if not inside:
            return None, None, None, of_gate, None
        return of_q, of_k * gate[:, None], of_v[..., :-1] * gate[:, None], of_gate, None


class EncoderAttentionGated(GatedBackbone):
    r"""Gated attention weights, before normalisation, in every layer of a transformer.

    Logits and gradients are those of ``backbone.aggregate(tokens, mask, gate)``. The tiles are
    split into open ones, :math:`g > 0`, and closed ones, :math:`g = 0`:

    * nobody attends to a closed tile, so the logits depend on the open tiles alone, and no gradient
      reaches a closed tile's hidden state;
    * the gate of a closed tile has a slope, though, for which its keys and values are needed in
      every layer. Closed tiles are carried along without gradients, attending to the open ones;
    * where the gate needs no gradient, closed tiles are left out altogether;
    * in the last layer only the CLS token has a query.

    Bags are forwarded one by one: a bag that keeps 3 tiles costs 3 tiles, whatever the batch.
    """

    backbone: TransMIL

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Gate the attention."""
        bags = zip(tiles["tokens"], mask, gate, strict=True)
        return torch.cat([self._logits(*bag) for bag in bags])

    def _logits(self, tokens: Tensor, real: Tensor, gate: Tensor) -> Tensor:
        """Logits ``[1, C]`` of one bag ``[N, d]`` under its gate ``[N]``."""
        kept = real & (gate > 0)
        opened, closed = kept.nonzero()[:, 0], (real & ~kept).nonzero()[:, 0]
        learned = torch.is_grad_enabled() and gate.requires_grad
        order = torch.cat([opened, closed]) if learned else opened
        gate = F.pad(gate[order], (1, 0), value=1.0)
        tokens, n_open = tokens[order], len(opened)
        hidden = torch.cat([self.backbone.cls[None], tokens[:n_open]]).unsqueeze(0)
        closed_hidden = tokens[n_open:].detach().unsqueeze(0)
        *layers, last = cast("list[EncoderLayer]", list(self.backbone.layers))
        for layer in layers:
            hidden, closed_hidden = _through_layer(layer, hidden, closed_hidden, gate)
        every = torch.cat([hidden, closed_hidden], dim=1)
        return self.backbone.readout(last.first(every, gate=gate))


def _through_layer(
    layer: EncoderLayer, hidden: Tensor, closed_hidden: Tensor, gate: Tensor
) -> tuple[Tensor, Tensor]:
    """CLS and open tiles ``[1, n, d]`` and closed tiles ``[1, m, d]``, gate ``[n + m]``."""
    n_open = hidden.shape[1]
    q, k, v = layer.qkv(hidden)
    if closed_hidden.shape[1]:
        with torch.no_grad():
            closed_q, closed_k, closed_v = layer.qkv(closed_hidden)
            gathered = gated_attention(closed_q, k, v, gate[:n_open], n_open)
            closed_hidden = closed_hidden + layer.merge(gathered)
            closed_hidden = closed_hidden + layer.feed_forward(closed_hidden)
        k, v = torch.cat([k, closed_k], dim=-2), torch.cat([v, closed_v], dim=-2)
    hidden = hidden + layer.merge(gated_attention(q, k, v, gate, n_open))
    return hidden + layer.feed_forward(hidden), closed_hidden


class FeatureGated(GatedBackbone):
    r"""Gated features :math:`f(z \odot X)`, as in the paper: dropped tiles stay in the bag, empty.

    The tiles are embedded again in every step.
    """

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Tokens for the selector head, features for the gate."""
        return {**super().prepare(features), "features": features}

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Gate the features and embed them again."""
        tokens = self.backbone.embed(gate.unsqueeze(-1) * tiles["features"])
        return self.backbone.aggregate(tokens, mask)


class TokenGated(GatedBackbone):
    r"""Gated tokens, where :math:`\mathrm{embed}(z x) = z\,\mathrm{embed}(x)`.

    Gating the token *is* gating the feature, and no tile is embedded twice. Gradients are those of
    gated features too. At a gate of exactly 0 automatic differentiation of
    :math:`\mathrm{ReLU}(z W x)` gives 0 by convention, so a tile with a gate of 0 has no
    gradient.

    Args:
        backbone: With ``capabilities.homogeneous``.
        dense: Give a tile with gate 0 the one-sided slope, as its gate opens, instead.
    """

    def __init__(self, backbone: Backbone, *, dense: bool = False) -> None:
        super().__init__(backbone)
        self.dense = dense or not _flat_at_zero(backbone)
        self.closed_are_alike = not self.dense and _weighs_equal_tiles(backbone)

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Gate the tokens."""
        tokens = tiles["tokens"]
        if not self.dense:
            gate = torch.where(gate > 0, gate, gate.detach())
        if self.closed_are_alike and 2 * int((gate > 0).sum(dim=-1).max()) < gate.shape[-1]:
            return self._few(tokens, mask, gate)
        return self.backbone.aggregate(gate.unsqueeze(-1) * tokens, mask)

    def _few(self, tokens: Tensor, mask: Tensor, gate: Tensor) -> Tensor:
        """The same where most gates are 0: one empty tile stands for all empty tiles.

        To an order-free backbone, n equal tiles are one tile with n times its attention weight.
        """
        kept = gate > 0
        index = kept_first(kept)
        chosen = tokens.take_along_dim(index.unsqueeze(-1), dim=1)
        chosen = chosen * gate.gather(1, index)[..., None]
        present = kept.gather(1, index)
        alike = (mask & ~kept).sum(dim=-1, keepdim=True)
        return self.backbone.aggregate(
            F.pad(chosen, (0, 0, 0, 1)),
            torch.cat([present, alike > 0], dim=1),
            torch.cat([present.to(tokens.dtype), alike.to(tokens.dtype)], dim=1),
        )


def _flat_at_zero(backbone: Backbone) -> bool:
    """Whether ``embed`` passes no gradient to a feature that is 0, as a ReLU does not."""
    device, dtype = device_and_dtype(backbone)
    gate = torch.zeros(1, 1, device=device, dtype=dtype, requires_grad=True)
    ray = torch.linspace(-1, 2, backbone.d_in, device=device, dtype=dtype)
    with torch.enable_grad():
        tokens = backbone.embed(gate * ray)
    if not tokens.requires_grad:
        return True
    (slope,) = torch.autograd.grad(tokens.sum(), gate, allow_unused=True)
    return slope is None or not bool(slope.any())


@torch.no_grad()
def _weighs_equal_tiles(backbone: Backbone) -> bool:
    """Whether three equal tiles are one tile with three times its attention weight."""
    can = backbone.capabilities
    if not (can.order_free and "attention" in can.gate_sites):
        return False
    device, dtype = device_and_dtype(backbone)
    tokens = torch.zeros(1, 4, backbone.d_token, device=device, dtype=dtype)
    tokens[0, 0] = torch.linspace(-1, 2, backbone.d_token)
    weights = torch.tensor([[1.0, 3.0]], device=device, dtype=dtype)
    short = backbone.aggregate(tokens[:, :2], None, weights)
    return bool(torch.allclose(short, backbone.aggregate(tokens), rtol=1e-3, atol=1e-4))


def choose_site(backbone: Backbone, sites: Sequence[GateSite]) -> GateSite:
    """The first of the wanted gate sites that the backbone has."""
    offered = backbone.capabilities.gate_sites
    for site in sites:
        if site in offered:
            return site
    if not offered:
        raise FociError(
            f"backbone {backbone.architecture}",
            "passes no gradient back to its tiles, so no selector can be fitted",
            "use a ranking that needs none (norm, greedy, leave-one-out, random)",
        )
    raise FociError(
        f"backbone {backbone.architecture}",
        f"has no gate site {' or '.join(sites)}",
        f"choose a recipe with gate site {' or '.join(offered)}",
    )


def gate_backbone(backbone: Backbone, site: GateSite, *, dense: bool = False) -> GatedBackbone:
    """The cheapest exact way to gate a backbone at a site; ``dense`` as in :class:`TokenGated`."""
    if site == "feature":
        homogeneous = backbone.capabilities.homogeneous
        return TokenGated(backbone, dense=dense) if homogeneous else FeatureGated(backbone)
    if pools(backbone):
        return PooledAttentionGated(backbone)
    if isinstance(backbone, TransMIL) and declared(backbone, "encoder"):
        return EncoderAttentionGated(backbone)
    return AttentionGated(backbone)
