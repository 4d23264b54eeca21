"""A model as it is when nobody trains it, for the time being."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def eval_mode(*models: nn.Module) -> Iterator[None]:
    """Eval mode inside; afterwards every module has its own mode back.

    >>> model = nn.Sequential(nn.Dropout(), nn.Dropout().eval())
    >>> with eval_mode(model):
    ...     [module.training for module in model.modules()]
    [False, False, False]
    >>> [module.training for module in model.modules()]
    [True, True, False]
    """
    training = [module for model in models for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def frozen(*models: nn.Module) -> Iterator[None]:
    """Eval mode and no gradients."""
    with eval_mode(*models), torch.no_grad():
        yield
