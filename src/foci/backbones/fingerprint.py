"""A model's identity: what it is, down to the last bit."""

from __future__ import annotations

import hashlib

import torch
from torch import nn


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
