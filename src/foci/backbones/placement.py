"""Where a model computes, and in which precision."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def placed(x: Tensor, model: nn.Module) -> Tensor:
    """A tensor on the model's device and in its floating-point type.

    A model without floating-point parameters takes what it is given.

    >>> placed(torch.zeros(2, dtype=torch.float16), nn.Linear(2, 1)).dtype
    torch.float32
    """
    own = next((p for p in model.parameters() if p.is_floating_point()), x)
    return x.to(own.device, own.dtype)


def home(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """The model's device and precision; the CPU and float32 for one without parameters."""
    number = placed(torch.zeros(()), model)
    return number.device, number.dtype
