r"""Attention nets, projections, heads and EMA copies; softmax pooling of sets and of prefixes.

The pooling of a set of tiles, of a gated set, and of every prefix of an ordered set compute, for
attention logits :math:`a` and values :math:`v`,

.. math:: z = \sum_i w_i v_i, \qquad w_i = \frac{g_i e^{a_i}}{\sum_j g_j e^{a_j}}

over the tiles that are present. Softmax-plus-one adds 1 to the denominator, which is one more tile
with logit 0 and value 0: the weights of the others sum to less than 1.

Shapes: logits ``[..., N, R]`` for R rows (branches, heads or classes), values
``[..., N, 1 or R, dv]``, pooled ``[..., R, dv]``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.errors import FociError

M = TypeVar("M", bound=nn.Module)

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
}
_PROJECTIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "linear": nn.Identity,
}


class GatedAttention(nn.Module):
    r"""Attention logits, ``rows`` of them for every token.

    .. math:: a_{ri} = w_r^\top \big(\phi(V h_i) \odot \sigma(U h_i)\big) + b_r

    ``hidden`` is the width of V and U. Without the gate the factor :math:`\sigma(U h)` is dropped;
    :math:`\phi` is tanh everywhere but in MHIM-MIL; dropout is applied after each factor.
    """

    def __init__(
        self,
        d: int,
        hidden: int,
        rows: int = 1,
        *,
        gated: bool = True,
        activation: str = "tanh",
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        if activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise FociError("attention activation", f"is {activation!r}", f"choose one of {known}")
        super().__init__()
        self.V = nn.Linear(d, hidden, bias=bias)
        self.U = nn.Linear(d, hidden, bias=bias) if gated else None
        self.w = nn.Linear(hidden, rows, bias=bias)
        self.activation = ACTIVATIONS[activation]
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to attention logits ``[..., N, rows]``."""
        hidden = self.dropout(self.activation(self.V(tokens)))
        if self.U is not None:
            hidden = hidden * self.dropout(torch.sigmoid(self.U(tokens)))
        logits: Tensor = self.w(hidden)
        return logits


class HeadReadout(nn.Module):
    r"""Output of multi-head attention: the pooled tokens of H heads become one token.

    .. math:: o = \mathrm{LayerNorm}\big(W_o\,[V_1 z_1 + c_1; \dots; V_H z_H + c_H] + b_o\big)

    with dropout before the LayerNorm, while training.
    """

    def __init__(self, d: int, heads: int, dropout: float) -> None:
        if d % heads:
            what = f"cannot be split into {heads} heads"
            raise FociError(f"d={d}", what, "choose a multiple of the heads")
        super().__init__()
        self.heads = heads
        self.v = nn.Linear(d, d)
        self.out = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d, eps=1e-6)
        self.dropout = nn.Dropout(dropout)

    def project(self, tokens: Tensor) -> Tensor:
        """Values ``[..., H, d/H]`` of pooled tokens ``[..., H, d]`` or a tile ``[..., 1, d]``."""
        if tokens.shape[-2] == 1:
            return torch.unflatten(self.v(tokens.squeeze(-2)), -1, (self.heads, -1))
        weight = torch.unflatten(self.v.weight, 0, (self.heads, -1))
        bias = torch.unflatten(self.v.bias, 0, (self.heads, -1))
        return torch.einsum("...hd,hed->...he", tokens, weight) + bias

    def forward(self, values: Tensor) -> Tensor:
        """Pooled values ``[..., H, d/H]`` to a token ``[..., d]``."""
        token: Tensor = self.norm(self.dropout(self.out(values.flatten(-2))))
        return token


class QueryAttention(HeadReadout):
    r"""Multi-head attention logits for one learned query; the caller pools, the readout follows.

    As the query :math:`q` does not depend on the bag, the key projection of head j folds into one
    vector per head, and as softmax weights add up to 1, values may be projected before or after
    the pooling:

    .. math:: a_{ji} = \frac{\langle q_j, K_j h_i + b_j\rangle}{\sqrt{d/H}}
       = \Big\langle \frac{K_j^\top q_j}{\sqrt{d/H}}, h_i\Big\rangle + \mathrm{const}_j, \qquad
       \sum_i w_{ji} (V_j h_i + c_j) = V_j \Big(\sum_i w_{ji} h_i\Big) + c_j

    Both are exact. A whole bag is cheapest when it is pooled first, its N tiles then cost H numbers
    each; many prefixes are cheapest when tiles are projected first, each then pools d/H numbers.
    """

    def __init__(self, d: int, heads: int, dropout: float) -> None:
        super().__init__(d, heads, dropout)
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d)

    def logits(self, query: Tensor, tokens: Tensor) -> Tensor:
        """Query ``[d]`` and tokens ``[..., N, d]`` to attention logits ``[..., N, H]``."""
        queries = torch.unflatten(self.q(query), -1, (self.heads, -1))
        queries = queries * queries.shape[-1] ** -0.5
        keys = torch.unflatten(self.k.weight, 0, (self.heads, -1))
        weight = torch.einsum("he,hed->hd", queries, keys)
        bias = (queries * torch.unflatten(self.k.bias, 0, (self.heads, -1))).sum(dim=-1)
        return F.linear(tokens, weight, bias)


class QueryBranches(nn.Module):
    """K learned queries (``branches``), each with its own multi-head attention."""

    def __init__(self, d: int, branches: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.queries = nn.Parameter(nn.init.normal_(torch.empty(1, branches, d), std=1e-6))
        self.attention = nn.ModuleList(QueryAttention(d, heads, dropout) for _ in range(branches))

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to logits ``[..., N, K*H]``, ordered by query, then by head."""
        attentions = cast("Iterable[QueryAttention]", self.attention)
        pairs = zip(attentions, self.queries[0], strict=True)
        return torch.cat([attention.logits(query, tokens) for attention, query in pairs], dim=-1)

    def project(self, tokens: Tensor) -> Tensor:
        """Pooled tokens ``[..., K*H, d]`` or tiles ``[..., 1, d]`` to values of width d/H."""
        attentions = cast("Iterable[QueryAttention]", self.attention)
        k = len(self.attention)
        groups = [tokens] * k if tokens.shape[-2] == 1 else tokens.chunk(k, dim=-2)
        pairs = zip(attentions, groups, strict=True)
        return torch.cat([attention.project(group) for attention, group in pairs], dim=-2)

    def summarise(self, values: Tensor) -> Tensor:
        """Pooled values ``[..., K*H, d/H]`` to one token per query ``[..., K, d]``."""
        pairs = zip(self.attention, values.chunk(len(self.attention), dim=-2), strict=True)
        return torch.stack([attention(group) for attention, group in pairs], dim=-2)

    def read(self, pooled: Tensor) -> Tensor:
        """Pooled tokens ``[..., K*H, d]`` to one token per query ``[..., K, d]``."""
        return self.summarise(self.project(pooled))


def projection(
    d_in: int,
    d: int | None,
    *,
    bias: bool,
    dropout: float = 0.0,
    activation: str = "relu",
    layers: int = 1,
) -> nn.Module:
    """Linear, activation (``"relu"``, ``"gelu"`` or none, ``"linear"``), dropout: ``h = act(W x)``.

    The identity where ``d`` is None. Layers after the first lead from d to d. With ReLU and no bias
    it is homogeneous, so that gating x is gating h.
    """
    if d is None:
        return nn.Identity()
    if activation not in _PROJECTIONS:
        known = " or ".join(_PROJECTIONS)
        raise FociError("projection activation", f"is {activation!r}", f"choose {known}")
    stack: list[nn.Module] = []
    for width in [d_in] + [d] * (layers - 1):
        stack += [nn.Linear(width, d, bias=bias), _PROJECTIONS[activation](), nn.Dropout(dropout)]
    return nn.Sequential(*stack)


def residual_adaptor(d: int, hidden: int) -> nn.Sequential:
    """``Linear(d, hidden) - ReLU - Linear(hidden, d)``, to be added to its input."""
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, d))


def head(d: int, n_classes: int, hidden: int | None, layers: int = 1) -> nn.Module:
    """Linear head, or ``Linear(d, hidden) - ReLU - Linear(hidden, C)`` as in the paper presets.

    ``layers`` counts the hidden layers, each ``hidden`` wide with a ReLU behind it.
    """
    if hidden is None:
        return nn.Linear(d, n_classes)
    stack: list[nn.Module] = []
    for width in [d] + [hidden] * (layers - 1):
        stack += [nn.Linear(width, hidden), nn.ReLU()]
    return nn.Sequential(*stack, nn.Linear(hidden, n_classes))


def split_head(head: nn.Module) -> tuple[nn.Module, list[nn.Module]]:
    """Split a head into the affine layer it begins with (identity if none) and the rest.

    >>> split_head(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))
    (Linear(in_features=4, out_features=3, bias=True), [ReLU()])
    """
    layers: list[nn.Module] = list(head) if isinstance(head, nn.Sequential) else [head]
    if layers and isinstance(layers[0], nn.Linear):
        return layers[0], layers[1:]
    return nn.Identity(), layers


@torch.no_grad()
def ema_update(target: nn.Module, source: nn.Module, momentum: float) -> None:
    r"""Exponential moving average of parameters.

    .. math:: \theta' \leftarrow m\,\theta' + (1-m)\,\theta
    """
    for slow, fast in zip(target.parameters(), source.parameters(), strict=True):
        slow.lerp_(fast, 1.0 - momentum)


def frozen_copy(module: M) -> M:
    """Deep copy without gradients: where a teacher or an anchor starts."""
    return copy.deepcopy(module).requires_grad_(False)


MAX_EXCESS = 30.0
"""Largest excess of a gated-out tile's logit over the kept ones. Its weight is 0, but its gradient
is proportional to exp(logit - max kept), which has to stay finite."""

_BLOCK = 64
"""Prefixes per block where each needs a softmax of its own."""

_SUMMED_AT_ONCE = 2**16
"""Numbers per block of a running sum: 512 KiB in float64, which stay in a processor's cache."""

RISE = 600.0
"""Rise of the attention logits over the first one up to which nothing underflows in float64."""

_ALWAYS_IN = 32
"""Tiles that are in every prefix, from which on they are summed as one product."""


def softmax_weights(
    logits: Tensor,
    mask: Tensor | None = None,
    gate: Tensor | None = None,
    *,
    plus_one: bool = False,
) -> Tensor:
    """Softmax over the tiles with a mask and a gate ``[..., N]``, ``[..., N, R]`` as the logits.

    The mask is True where a tile is present. The gate multiplies the unnormalised weight and is
    differentiable at 0 too. A tile that is masked out or gated to 0 has weight 0.

    >>> softmax_weights(torch.tensor([[0.0], [0.0], [9.0]]), torch.tensor([True, True, False]))
    tensor([[0.5000],
            [0.5000],
            [0.0000]])
    """
    if mask is not None:
        logits = logits.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    if plus_one:
        gate = None if gate is None else F.pad(gate, (0, 1), value=1.0)
        return softmax_weights(with_empty_tile(logits), gate=gate)[..., :-1, :]
    if gate is None:
        return torch.softmax(logits, dim=-2)
    gate = gate.unsqueeze(-1)
    kept = logits.masked_fill(gate <= 0, -torch.inf)
    peak = kept.amax(dim=-2, keepdim=True).detach()
    peak = peak.masked_fill(peak.isneginf(), 0.0)
    weights = gate * torch.exp((logits - peak).clamp(max=MAX_EXCESS))
    total = weights.sum(dim=-2, keepdim=True)
    return weights / total.clamp_min(torch.finfo(weights.dtype).tiny)


def with_empty_tile(logits: Tensor) -> Tensor:
    """Logits ``[..., N + 1, R]`` with the tile of logit 0 that softmax-plus-one adds, last."""
    return F.pad(logits, (0, 0, 0, 1))


def pool(weights: Tensor, values: Tensor) -> Tensor:
    """Weighted sums ``[..., R, dv]`` of values ``[..., N, 1 or R, dv]``."""
    if values.shape[-2] == 1:
        return weights.transpose(-1, -2) @ values.squeeze(-2)
    return torch.einsum("...nr,...nrd->...rd", weights, values)


def prefix_pool(
    logits: Tensor,
    values: Tensor,
    ks: Tensor,
    order: Tensor | None = None,
    *,
    plus_one: bool = False,
) -> Tensor:
    r"""Pooled values of the first k tiles for every k in ``ks``, in float64.

    .. math:: z(k) = \frac{\sum_{i \le k} e^{a_i - m_k} v_i}{\sum_{i \le k} e^{a_i - m_k}},
       \qquad m_k = \max_{i \le k} a_i

    In an arbitrary order the tile with the largest logit may come last. As long as it lies less
    than 600 above the first one, nothing underflows with one maximum for all prefixes, and running
    sums give every count at once; beyond that every count gets a softmax with its own maximum.

    From logits ``[N, R]`` and values ``[N, 1 or R, dv]`` in reveal order, or with their indices in
    reveal order as ``order`` ``[N]``, which saves reordering the values, to ``[K, R, dv]``. The
    counts ``ks`` ``[K]`` may be in any order.

    >>> z = prefix_pool(torch.tensor([[0.0], [900.0]]), torch.tensor([[[1.0]], [[3.0]]]),
    ...                 torch.tensor([1, 2]))
    >>> z.flatten().tolist()
    [1.0, 3.0]
    """
    last = int(ks.max())
    order = torch.arange(last, device=logits.device) if order is None else order[:last]
    if plus_one:  # the tile that it adds comes first in the order
        order, ks = F.pad(order, (1, 0), value=len(logits)), ks + 1
        logits, values = with_empty_tile(logits), F.pad(values, (0, 0, 0, 0, 0, 1))
    logits = logits[order].double()
    rise = (logits.amax(dim=0) - logits[0]).amax()
    if rise < RISE:
        return _running_sums(logits, values, ks, order)
    values = values[order].double()
    return torch.cat([_own_softmax(logits, values, block) for block in torch.split(ks, _BLOCK)])


def always_in(ks: Tensor) -> int:
    """Tiles that are in every prefix, where they are worth a product of their own."""
    always = int(ks.min()) - 1
    return always if always >= _ALWAYS_IN else 0


def _running_sums(logits: Tensor, values: Tensor, ks: Tensor, order: Tensor) -> Tensor:
    """Sums block by block, of which only the counts asked for are kept.

    A block continues from the last sum of the one before. Numbers are thus added in reveal order,
    as in one cumulative sum over all tiles, and the block size changes no bit. Tiles before the
    smallest count (a deletion leaves many) are in every sum, and enter it as one product.
    """
    weights = torch.exp(logits - logits.amax(dim=0))  # [N, R]
    totals = torch.cumsum(weights, dim=0)[ks - 1].unsqueeze(-1)
    at_once = max(1, _SUMMED_AT_ONCE // (weights.shape[1] * values.shape[-1]))
    kept = totals.new_empty(len(ks), weights.shape[1], values.shape[-1])
    carried: Tensor | None = None
    first = always_in(ks)
    if first:
        carried = pool(weights[:first], values[order[:first]].double())
    for start in range(first, len(order), at_once):
        block = slice(start, start + at_once)
        terms = weights[block].unsqueeze(-1) * values[order[block]].double()  # [block, R, dv]
        if carried is not None:
            terms[0] += carried
        sums = torch.cumsum(terms, dim=0)
        if at_once >= len(order) - first:
            return sums[ks - 1 - first] / totals
        carried = sums[-1]
        asked = ((ks > start) & (ks <= start + at_once)).nonzero().squeeze(-1)
        kept[asked] = sums[ks[asked] - 1 - start]
    return kept / totals


def _own_softmax(logits: Tensor, values: Tensor, ks: Tensor) -> Tensor:
    """Pooled values with a softmax of its own for every count, whatever the logits."""
    peaks = torch.cummax(logits, dim=0).values[ks - 1]  # [K, R]
    revealed = torch.arange(len(logits), device=logits.device)[None, :] < ks[:, None]  # [K, N]
    exponent = logits.T[:, None, :] - peaks.T[:, :, None]  # [R, K, N]
    weights = torch.exp(exponent.masked_fill(~revealed, -torch.inf))
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return (weights @ values.transpose(0, 1)).transpose(0, 1)
