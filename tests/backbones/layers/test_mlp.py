"""Heads split in two, EMA and frozen copies by hand."""

import pytest
import torch
from torch import nn

from foci.backbones.layers.attention import ema_update, frozen_copy, head, projection, split_head


@pytest.mark.parametrize("hidden", [None, 5])
def test_a_split_head_is_the_head(hidden: int | None) -> None:
    whole = head(4, 3, hidden)
    first, rest = split_head(whole)
    x = torch.randn(7, 4)
    torch.testing.assert_close(nn.Sequential(*rest)(first(x)), whole(x))
    assert isinstance(first, nn.Linear)


def test_a_bias_free_projection_is_homogeneous() -> None:
    layer, x = projection(4, 6, bias=False), torch.randn(5, 4)
    torch.testing.assert_close(layer(0.3 * x), 0.3 * layer(x))


def test_ema_moves_by_the_rest_of_the_momentum() -> None:
    source = nn.Linear(2, 1)
    target = frozen_copy(source)
    nn.init.constant_(source.weight, 1.0)
    nn.init.constant_(target.weight, 0.0)
    ema_update(target, source, momentum=0.9)
    torch.testing.assert_close(target.weight, torch.full((1, 2), 0.1))
    assert not target.weight.requires_grad
    assert source.weight.requires_grad
