"""The classifiers that benchmarks list: paper presets, and TransMIL as its authors published it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from foci import backbones
from foci.backbones import Backbone
from foci.backbones.models.transmil import TransMIL, TransMILNystrom
from foci.backbones.transformer import NystromLayer, iterated_pinv, squared

EVERY = [
    *(name for name in backbones.available() if "paper" in backbones.presets(name)),
    "transmil:official",
]


def created(name: str, d_in: int) -> Backbone:
    """A classifier of two classes; its name may have a preset behind a colon."""
    architecture, _, preset = name.partition(":")
    return backbones.create(architecture, preset or "paper", d_in=d_in, n_classes=2)


def fitted(
    model: Backbone, bag: Callable[[int], Tensor], steps: int, rate: float = 2e-4
) -> Backbone:
    """The classifier after so many steps, each on one bag that is drawn for a label."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in range(steps):
        loss = F.cross_entropy(model(bag(step % 2))[None], torch.tensor([step % 2]))
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    return model.eval().requires_grad_(False)


def plain(model: Backbone, x: Tensor) -> Tensor:
    """A forward pass that computes every layer for every token, as published code does."""
    if isinstance(model, TransMIL):
        read: Tensor = model.readout(model.encode(model.embed(x)[None])[:, 0])
        return read
    if isinstance(model, TransMILNystrom):
        hidden = torch.cat([model.cls, squared(model.embed(x)[None])], dim=1)
        hidden = _published_layer(model.layer1, hidden)
        cls, tiles = hidden[:, :1], hidden[:, 1:].transpose(1, 2)
        grid = torch.unflatten(tiles, 2, (math.isqrt(tiles.shape[2]), -1))
        convolved = sum(conv(grid) for conv in model.position.children())
        hidden = torch.cat([cls, (grid + convolved).flatten(2).transpose(1, 2)], dim=1)
        logits: Tensor = model.head(model.norm(_published_layer(model.layer2, hidden))[:, 0])
        return logits[0]
    own: Tensor = model(x)
    return own


def _published_layer(layer: NystromLayer, tokens: Tensor) -> Tensor:
    """A layer with all factors as matrices, that attends to the zero tokens as to any others."""
    block, n = layer.attention, tokens.shape[1]
    padded = F.pad(layer.norm(tokens), (0, 0, -n % block.landmarks, 0))
    parts = torch.unflatten(block.qkv(padded), -1, (3, block.heads, -1))
    q, k, v = parts.permute(2, 0, 3, 1, 4)
    q = q * block.head_width**-0.5
    q_means, k_means = (torch.unflatten(x, 2, (block.landmarks, -1)).mean(dim=3) for x in (q, k))
    s1, s2, s3 = (
        torch.softmax(left @ right.transpose(-1, -2), dim=-1)
        for left, right in ((q, k_means), (q_means, k_means), (q_means, k))
    )
    inverse = iterated_pinv(s2, s2.sum(dim=-2).max())
    mixed = (s1 @ inverse) @ (s3 @ v) + block.residual(v)
    own: Tensor = block.output(mixed.transpose(1, 2).flatten(2))[:, -n:]
    return tokens + own
