"""Projection and head layers, split heads, EMA updates and frozen copies."""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

from foci.errors import FociError

M = TypeVar("M", bound=nn.Module)


_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}


def projection(
    d_in: int,
    d: int | None,
    *,
    bias: bool,
    dropout: float = 0.0,
    activation: str = "relu",
    layers: int = 1,
) -> nn.Module:
    """Linear, activation, dropout: ``h = act(W x)``; the identity where ``d`` is None.

    With ReLU and no bias it is homogeneous, so that gating x is gating h. Further ``layers`` of
    the same kind follow the first, each from d to d.
    """
    if d is None:
        return nn.Identity()
    if activation not in _ACTIVATIONS:
        known = " or ".join(_ACTIVATIONS)
        raise FociError("projection activation", f"is {activation!r}", f"choose {known}")
    stack: list[nn.Module] = []
    for width in [d_in] + [d] * (layers - 1):
        stack += [nn.Linear(width, d, bias=bias), _ACTIVATIONS[activation](), nn.Dropout(dropout)]
    return nn.Sequential(*stack)


def residual_adaptor(d: int, hidden: int) -> nn.Sequential:
    """``Linear(d, hidden) - ReLU - Linear(hidden, d)``, to be added to its input."""
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, d))


def head(d: int, n_classes: int, hidden: int | None) -> nn.Module:
    """Linear head, or ``Linear(d, hidden) - ReLU - Linear(hidden, C)`` as in the paper presets."""
    if hidden is None:
        return nn.Linear(d, n_classes)
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, n_classes))


def split_head(head: nn.Module) -> tuple[nn.Module, nn.Module]:
    """Split a head into the affine layer it begins with (identity if none) and the rest.

    >>> first, rest = split_head(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))
    >>> first, list(rest)
    (Linear(in_features=4, out_features=3, bias=True), [ReLU()])
    """
    if isinstance(head, nn.Linear):
        return head, nn.Identity()
    if isinstance(head, nn.Sequential) and len(head) and isinstance(head[0], nn.Linear):
        return head[0], head[1:]
    return nn.Identity(), head


def after_affine(head: nn.Module, x: Tensor) -> Tensor:
    """What follows the affine layer that a head begins with; the second part of a split head.

    >>> after_affine(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if isinstance(head, nn.Linear):
        return x
    layers: list[nn.Module] = list(head) if isinstance(head, nn.Sequential) else [head]
    for layer in layers[1:] if isinstance(layers[0], nn.Linear) else layers:
        x = layer(x)
    return x


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
