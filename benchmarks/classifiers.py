"""The classifiers that benchmarks list: paper presets, and TransMIL as its authors published it."""

from __future__ import annotations

import torch
from torch import Tensor

from foci import backbones
from foci.backbones import Backbone
from foci.backbones.models.transmil import TransMIL, TransMILNystrom
from foci.backbones.transformer import NystromLayer, squared

EVERY = [
    *(name for name in backbones.available() if "paper" in backbones.presets(name)),
    "transmil:official",
]


def created(name: str, d_in: int) -> Backbone:
    """A classifier of two classes; its name may have a preset behind a colon."""
    architecture, _, preset = name.partition(":")
    return backbones.create(architecture, preset or "paper", d_in=d_in, n_classes=2)


def plain(model: Backbone, x: Tensor) -> Tensor:
    """A forward pass that computes every layer for every token, as published code does."""
    if isinstance(model, TransMIL):
        read: Tensor = model.readout(model.encode(model.embed(x)[None])[:, 0])
        return read
    if isinstance(model, TransMILNystrom):
        hidden = torch.cat([model.cls, squared(model.embed(x)[None])], dim=1)
        hidden = _with_zero_tokens(model.layer1, hidden)
        hidden = torch.cat([hidden[:, :1], model.position(hidden[:, 1:])], dim=1)
        logits: Tensor = model.head(model.norm(_with_zero_tokens(model.layer2, hidden))[:, 0])
        return logits[0]
    own: Tensor = model(x)
    return own


def _with_zero_tokens(layer: NystromLayer, tokens: Tensor) -> Tensor:
    """A layer that attends to the zero tokens in front as to any others."""
    padding = -tokens.shape[1] % layer.attention.landmarks
    padded = torch.nn.functional.pad(layer.norm(tokens), (0, 0, padding, 0))
    mixed: Tensor = layer.attention(padded)
    return tokens + mixed[:, padding:]
