"""Eval mode, device and dtype of a model, and the fingerprint of its weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

_EVAL: set[nn.Module] = set()
"""Models that an enclosing block keeps in eval mode."""


@contextmanager
def eval_mode(*models: nn.Module) -> Iterator[None]:
    """Eval mode, restored on exit module by module.

    Inside the block of a model the same model is not looked through again: an audit asks for eval
    mode before every answer.

    >>> model = nn.Sequential(nn.Dropout(), nn.Dropout().eval())
    >>> with eval_mode(model):
    ...     [module.training for module in model.modules()]
    [False, False, False]
    >>> [module.training for module in model.modules()]
    [True, True, False]
    """
    entered = [model for model in models if model not in _EVAL]
    training = [module for model in entered for module in model.modules() if module.training]
    for module in training:
        module.training = False
    _EVAL.update(entered)
    try:
        yield
    finally:
        _EVAL.difference_update(entered)
        for module in training:
            module.training = True


@contextmanager
def frozen(*models: nn.Module) -> Iterator[None]:
    """Eval mode and no gradients, restored on exit."""
    with eval_mode(*models), torch.no_grad():
        yield


def to_model(x: Tensor, model: nn.Module) -> Tensor:
    """Move a tensor to the model's device and floating-point type, if it has any.

    To a GPU it is copied in the background, where its memory is pinned (:func:`pinned`).

    >>> to_model(torch.zeros(2, dtype=torch.float16), nn.Linear(2, 1)).dtype
    torch.float32
    """
    own = next((p for p in model.parameters() if p.is_floating_point()), x)
    return x.to(own.device, own.dtype, non_blocking=own.device.type == "cuda")


def pinned(x: Tensor, device: torch.device) -> Tensor:
    """The same numbers in memory from which a GPU copies by itself; as they are on a CPU."""
    return x.pin_memory() if device.type == "cuda" and x.device.type == "cpu" else x


def device_and_dtype(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Device and dtype of a model; CPU and float32 for one without parameters."""
    number = to_model(torch.zeros(()), model)
    return number.device, number.dtype


def fingerprint(module: nn.Module) -> str:
    """SHA-256 over names, types, shapes and bytes of all parameters and buffers.

    >>> linear = nn.Linear(2, 1)
    >>> before = fingerprint(linear)
    >>> with torch.no_grad():
    ...     _ = linear.bias.add_(1e-6)
    >>> before == fingerprint(linear)
    False
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {plain.dtype} {tuple(plain.shape)}\n".encode())
        digest.update(plain.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
