"""A small classifier under the tensor names of the project that published it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from foci.backbones import ARCHITECTURES, Backbone

D_IN = 12
SMALL = {"d": 8, "hidden": 6}


@dataclass(frozen=True)
class Official:
    """One naming: the format that should be found, our class and widths, their name -> ours."""

    format: str
    architecture: str
    widths: dict[str, Any]
    names: dict[str, str]
    n_classes: int = 2
    options: dict[str, Any] = field(default_factory=dict)
    change: Callable[[dict[str, Tensor]], dict[str, Tensor]] = lambda state: state

    def model(self) -> Backbone:
        torch.manual_seed(0)
        model = ARCHITECTURES[self.architecture](D_IN, self.n_classes, **self.widths).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape) / 2)
        return model

    def state(self, model: Backbone) -> dict[str, Tensor]:
        """Our tensors under the published names."""
        theirs = {ours: name for name, ours in self.names.items()}
        state = {}
        for key, tensor in model.state_dict().items():
            module, _, part = key.rpartition(".")
            state[theirs[key] if key in theirs else f"{theirs[module]}.{part}"] = tensor
        return self.change(state)


def gated_names(theirs: str, ours: str = "attention") -> dict[str, str]:
    return {
        f"{theirs}.attention_a.0": f"{ours}.V",
        f"{theirs}.attention_b.0": f"{ours}.U",
        f"{theirs}.attention_c": f"{ours}.w",
    }


def renamed(names: dict[str, str], old: str, new: str) -> dict[str, str]:
    return {theirs.replace(old, new): ours for theirs, ours in names.items()}


def with_tensors(**extra: Tensor) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    return lambda state: {**state, **extra}
