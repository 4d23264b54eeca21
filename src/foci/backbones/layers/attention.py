"""Gated attention, multi-head attention with learned queries, projections, heads, EMA copies."""

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
