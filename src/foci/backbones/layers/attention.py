"""Gated attention: one or more scores per token (Ilse et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from foci.errors import FociError

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {
    "relu": torch.relu,
    "gelu": nn.functional.gelu,
    "tanh": torch.tanh,
}


def check_activation(name: str) -> None:
    """Refuse an activation that no attention has."""
    if name not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise FociError("attention activation", f"is {name!r}", f"choose one of {known}")


class GatedAttention(nn.Module):
    r"""Attention logits, ``rows`` of them for every token.

    .. math:: a_{ri} = w_r^\top \big(\phi(V h_i) \odot \sigma(U h_i)\big) + b_r

    Args:
        d: Token width.
        hidden: Attention width.
        rows: Number of scores per token (branches or classes).
        gated: Without the gate the factor :math:`\sigma(U h)` is dropped.
        activation: :math:`\phi`; tanh everywhere but in MHIM-MIL.
        bias: Whether V, U and w have biases.
        dropout: Applied after each factor while training.
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
