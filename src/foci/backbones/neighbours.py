"""Which tiles touch which, from their coordinates."""

from __future__ import annotations

import torch
from torch import Tensor


def neighbourhoods(coords: Tensor, stride: int) -> Tensor:
    """The 3x3 neighbourhood of every tile, as indices ``[N, 9]`` into the tiles given.

    Column 4 is the tile itself. A neighbour is a tile *exactly* one stride away along x, y or
    both: every tissue contour may start a grid of its own, and tiles of two such grids are not
    neighbours. Where there is none, the tile stands in for it.

    Args:
        coords: ``[N, 2]`` whole-numbered positions of the tiles present.
        stride: Distance between neighbouring tiles in the units of ``coords``.

    >>> neighbourhoods(torch.tensor([[0, 0], [256, 0]]), stride=256).tolist()
    [[0, 0, 0, 0, 0, 0, 0, 1, 0], [1, 0, 1, 1, 1, 1, 1, 1, 1]]
    """
    step = torch.tensor([-stride, 0, stride], device=coords.device)
    offsets = torch.cartesian_prod(step, step)
    position = coords.round().long() if coords.is_floating_point() else coords.long()
    position = position - position.amin(dim=0)
    # Wide enough that one stride above or below a column meets no tile of the next one.
    width = int(position[:, 1].max()) + stride + 1

    keys, order = (position[:, 0] * width + position[:, 1]).sort(stable=True)
    around = position[:, None, :] + offsets  # [N, 9, 2]
    wanted = around[..., 0] * width + around[..., 1]
    place = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    itself = torch.arange(len(position), device=coords.device)[:, None]
    found = torch.where(keys[place] == wanted, order[place], itself)
    found[:, 4] = itself[:, 0]  # not another tile at the same place
    return found
