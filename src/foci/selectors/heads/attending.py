"""Learned summaries of a bag that every tile attends to, at a cost linear in the tiles."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SUMMARIES = 8
"""Summaries of a bag, unless a head says otherwise."""

WIDTH = 64
"""Width of a summary."""


class BagContext(nn.Module):
    r"""What a tile sees of the other tiles: M pools of the whole bag, read by attention.

    With the normalised token :math:`u_i` of tile i and learned queries :math:`q_m`,

    .. math:: s_m = \sum_i \mathrm{softmax}_i\big(\langle q_m, u_i \rangle\big)\,(V u_i + b), \qquad
       r_i = W_o \sum_m
       \mathrm{softmax}_m\Big(\frac{\langle Q u_i, K s_m \rangle}{\sqrt w}\Big)\, s_m

    No tile compares itself with every other one, so N tiles cost O(NM). :math:`W_o` is 0 at first.
    The result does not depend on the order of the tiles, nor on padding.

    Args:
        d: Token width.
        out: Width of :math:`r_i`.
        summaries: M.
    """

    def __init__(self, d: int, out: int, summaries: int = SUMMARIES) -> None:
        super().__init__()
        self.summaries = summaries
        self.queries = nn.Linear(d, summaries, bias=False)
        self.value = nn.Linear(d, WIDTH)
        self.look = nn.Linear(d, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, out, bias=False)
        nn.init.zeros_(self.out.weight)

    def forward(self, normed: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalised tokens ``[..., N, d]`` to ``[..., N, out]``.

        Args:
            normed: Tiles of a bag, or of several padded ones.
            mask: ``[..., N]`` bool, True where a tile is real; None where all are.
        """
        logits = self.queries(normed)
        if mask is not None:
            logits = logits.masked_fill(~mask.unsqueeze(-1), -torch.inf)
        summaries = torch.softmax(logits, dim=-2).transpose(-1, -2) @ self.value(normed)
        likeness = self.look(normed) @ self.key(summaries).transpose(-1, -2)
        seen: Tensor = self.out(torch.softmax(likeness * WIDTH**-0.5, dim=-1) @ summaries)
        return seen
