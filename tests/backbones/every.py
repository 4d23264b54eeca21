"""All registered presets at a width that tests can afford."""

import inspect
from typing import Any

import torch

from foci import backbones
from foci.backbones import Backbone
from foci.backbones.base import PRESETS

D_IN = 32
EVERY = [(name, preset) for name in backbones.available() for preset in backbones.presets(name)]
SHRINK = 16  # head widths and halves of widths stay whole


def narrow(name: str, preset: str) -> dict[str, Any]:
    """Every large width of a preset, divided by the same number."""
    chosen = PRESETS[name][preset]
    parameters = inspect.signature(chosen.architecture).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return {
        key: value // SHRINK
        for key, value in {**defaults, **chosen.widths}.items()
        if isinstance(value, int) and value >= 64
    }


def small(name: str, preset: str, n_classes: int) -> Backbone:
    """The preset with every large width divided by the same number."""
    torch.manual_seed(0)
    return backbones.create(name, preset, d_in=D_IN, n_classes=n_classes, **narrow(name, preset))
