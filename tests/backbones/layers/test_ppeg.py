"""The position encoding against loops over the grid."""

import pytest
import torch
from torch import Tensor

from foci.backbones.layers.transformer import PPEG, CroppedPPEG, squared


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def convolved(block: PPEG, grid: Tensor) -> Tensor:
    """Grid ``[s, s, d]``: identity and three depth-wise convolutions, tap by tap."""
    side = len(grid)
    out = grid.clone()
    for conv, reach in ((block.conv7, 3), (block.conv5, 2), (block.conv3, 1)):
        out = out + conv.bias
        for y in range(side):
            for x in range(side):
                for dy in range(-reach, reach + 1):
                    for dx in range(-reach, reach + 1):
                        if 0 <= y + dy < side and 0 <= x + dx < side:
                            taps = conv.weight[:, 0, dy + reach, dx + reach]
                            out[y, x] = out[y, x] + taps * grid[y + dy, x + dx]
    return out


@pytest.mark.parametrize(
    ("n", "want"),
    [
        (1, [0]),
        (2, [0, 1, 0, 1]),
        (3, [0, 1, 2, 0]),
        (4, [0, 1, 2, 3]),
        (5, [*range(5), *range(4)]),
    ],
)
def test_first_tiles_fill_the_square(n: int, want: list[int]) -> None:
    tiles = torch.arange(n, dtype=torch.float64).view(1, n, 1)
    assert squared(tiles).flatten().tolist() == want


def test_position_encoding_equals_loops() -> None:
    torch.manual_seed(0)
    block, tokens = PPEG(2).double(), random(1, 9, 2)
    want = convolved(block, tokens[0].view(3, 3, 2)).view(9, 2)
    torch.testing.assert_close(block(tokens)[0], want)


@pytest.mark.parametrize(("n", "side"), [(1, 7), (5, 7), (49, 7), (50, 8)])
def test_cropped_form_squares_then_fills_seven_by_seven_then_crops(n: int, side: int) -> None:
    torch.manual_seed(0)
    block, tokens = CroppedPPEG(2).double(), random(1, n, 2)
    sequence = squared(tokens)[0]
    grid = torch.zeros(side * side, 2, dtype=torch.float64)
    grid[: len(sequence)] = sequence
    want = convolved(block, grid.view(side, side, 2)).view(-1, 2)[:n]
    torch.testing.assert_close(block(tokens)[0], want)
