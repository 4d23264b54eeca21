"""PPEG: the position encoding of the official TransMIL (Shao et al. 2021)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def squared(tokens: Tensor) -> Tensor:
    """Pad a sequence to a square length by repeating its first tiles.

    >>> squared(torch.tensor([[[1.0], [2.0]]])).flatten().tolist()
    [1.0, 2.0, 1.0, 2.0]
    """
    n = tokens.shape[1]
    side = math.isqrt(n - 1) + 1 if n else 0
    return torch.cat([tokens, tokens[:, : side * side - n]], dim=1)


class PPEG(nn.Module):
    r"""Position encoding by convolutions over the tiles, laid out row by row in a square.

    The tiles' real positions play no part.

    .. math:: \mathrm{PPEG}(H) = H + \mathrm{conv}_{7}(H) + \mathrm{conv}_{5}(H)
       + \mathrm{conv}_{3}(H)

    depth-wise, with zero padding at the border.

    Args:
        d: Token width.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.conv7 = nn.Conv2d(d, d, 7, padding=3, groups=d)
        self.conv5 = nn.Conv2d(d, d, 5, padding=2, groups=d)
        self.conv3 = nn.Conv2d(d, d, 3, padding=1, groups=d)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens ``[B, s*s, d]`` of a full square to the same shape."""
        side = math.isqrt(tokens.shape[1])
        grid = tokens.transpose(1, 2).reshape(len(tokens), -1, side, side)
        grid = grid + self.conv7(grid) + self.conv5(grid) + self.conv3(grid)
        out: Tensor = grid.flatten(2).transpose(1, 2)
        return out


class CroppedPPEG(PPEG):
    """PPEG for any number of tiles, as in MHIM-MIL.

    The bag is padded to a square, with zeros to 7 x 7 if smaller, and cropped afterwards.
    """

    smallest = 49

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens ``[B, n, d]`` to the same shape."""
        n = tokens.shape[1]
        square = squared(tokens)
        square = F.pad(square, (0, 0, 0, max(0, self.smallest - square.shape[1])))
        return super().forward(square)[:, :n]
