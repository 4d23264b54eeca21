"""The selector head: a small MLP that scores a tile from its token."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

HIDDEN = 256


class SelectorHead(nn.Module):
    r"""One score per tile, or one per tile and class.

    .. math:: a_i = W_2\,\mathrm{GELU}(W_1\,\mathrm{LN}(t_i) + b_1) + b_2

    The paper's head has one output: 132,609 parameters on tokens of width 512. A
    class-conditional head has one output per class, so that the tiles that support one class need
    not be those that support another.

    Args:
        d: Token width.
        outputs: 1, or the number of classes.

    >>> sum(p.numel() for p in SelectorHead(512).parameters())
    132609
    """

    def __init__(self, d: int, outputs: int = 1) -> None:
        super().__init__()
        self.d, self.outputs = d, outputs
        self.norm = nn.LayerNorm(d)
        self.widen = nn.Linear(d, HIDDEN)
        self.score = nn.Linear(HIDDEN, outputs)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` to all scores, ``[..., N, outputs]``."""
        scores: Tensor = self.score(F.gelu(self.widen(self.norm(tokens))))
        return scores

    def at(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Tokens ``[B, N, d]`` to the scores ``[B, N]`` for the target classes.

        Args:
            tokens: Embedded tiles.
            targets: ``[B]``, whose output of a class-conditional head is taken.
        """
        scores: Tensor = self(tokens)
        if self.outputs == 1:
            return scores.squeeze(-1)
        index = targets[:, None, None].expand(*scores.shape[:2], 1)
        return scores.gather(-1, index).squeeze(-1)
