"""Random subsets of an exact size, for hiding tiles and tokens in training."""

from __future__ import annotations

import torch
from torch import Tensor


def choose(candidates: Tensor, count: Tensor | int, dim: int = -1) -> Tensor:
    """Mark ``count`` of the candidates at random, all subsets of that size being equally likely.

    Args:
        candidates: Bool, True where an entry may be chosen.
        count: How many to choose along ``dim`` (broadcast against ``candidates``); where there
            are fewer candidates, all of them are chosen.
        dim: The dimension along which entries compete.

    Returns:
        Bool of the same shape. Draws from torch's global generator.

    >>> choose(torch.tensor([True, False, True, True]), 2).sum().item()
    2
    """
    keys = torch.rand(candidates.shape, device=candidates.device)
    place = keys.masked_fill(~candidates, torch.inf).argsort(dim=dim).argsort(dim=dim)
    return (place < count) & candidates
