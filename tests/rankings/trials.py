"""Classifiers and bags that every ranking is tried on, and slow references to compare with."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from foci.backbones import Backbone, CallableBackbone
from foci.bags import Bag
from tests.backbones.every import D_IN, small

POOLED = [
    ("abmil", "paper"),
    ("abmil", "official"),
    ("clam-sb", "official"),
    ("clam-mb", "official"),
    ("acmil", "paper"),
    ("acmil", "mha"),
    ("attrimil", "paper"),
    ("asmil", "official"),
    ("mhim-mil", "paper"),
    ("mean-mil", "official"),
]
OTHERS = [
    ("transmil", "paper"),
    ("transmil", "official"),
    ("dsmil", "official"),
    ("max-mil", "official"),
    ("mil-fc", "official"),
    ("callable", ""),
]


class Mean(nn.Module):
    """A foreign classifier: mean of what a small network says of the tiles."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(D_IN, 8), nn.Tanh(), nn.Linear(8, n_classes))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x).mean(dim=0)
        return logits


def make(name: str, preset: str, n_classes: int = 3, spread: float = 20.0) -> Backbone:
    """A small classifier in float64 and eval mode whose tiles differ in weight."""
    if name == "callable":
        torch.manual_seed(0)
        net = Mean(n_classes)
        return CallableBackbone(net, D_IN, n_classes, order_free=True).double().eval()
    model = small(name, preset, n_classes).double().eval()
    for key, parameter in model.named_parameters():
        if key.endswith((".w.weight", ".q.weight")):
            parameter.data.mul_(spread)
    return model.requires_grad_(False)


def features(n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, D_IN, generator=generator, dtype=torch.float64)


def bag_of(n: int, seed: int = 0) -> Bag:
    """A bag that knows where its tiles stand in the file, and on the slide."""
    x = features(n, seed).float().numpy()
    coords = np.stack([np.arange(n) * 256, np.arange(n) % 3], axis=1)
    return Bag("slide-1", x, coords=coords, kept=2 * np.arange(n), n_in_file=40)


def permuted(bag: Bag, order: np.ndarray[Any, Any]) -> Bag:
    """The same tiles in another order."""
    assert bag.coords is not None
    assert bag.kept is not None
    return Bag(
        bag.slide_id,
        bag.features[order],
        coords=bag.coords[order],
        kept=bag.kept[order],
        n_in_file=bag.n_in_file,
    )


def logits_of(model: Backbone, x: Tensor, tiles: Sequence[int]) -> Tensor:
    """The slow way: the features of the subset, alone, in bag order."""
    with torch.no_grad():
        logits: Tensor = model(x[sorted(tiles)])
    return logits


def probability(model: Backbone, x: Tensor, tiles: Sequence[int], target: int) -> float:
    return float(torch.softmax(logits_of(model, x, tiles), dim=-1)[target])
