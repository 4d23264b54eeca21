"""Weights and features from a formula, so that published values need no stored tensors.

For a tensor NAME and flat index i: ``u = frac(sin(12.9898 (i+1) + 78.233 (crc32(NAME) mod 1000))
* 43758.5453)`` and ``v = 2u - 1`` in float64.
"""

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foci.backbones import ARCHITECTURES
from foci.backbones.checkpoints.formats import complete_options, recognise
from foci.backbones.checkpoints.formats.base import StateDict


def golden(name: str) -> dict[str, Any]:
    """What the published code returned under these weights."""
    content: dict[str, Any] = json.loads(
        (Path(__file__).parent / "golden" / f"{name}.json").read_text()
    )
    return content


def fill(name: str, shape: tuple[int, ...], *, norm: bool = False) -> Tensor:
    """Weights: ``v sqrt(3 / fan_in)`` for matrices, ``0.1 v`` for vectors.

    Weights of norms and variances have 1 added.
    """
    v = _uniform(name, shape)
    if len(shape) >= 2:
        return v * math.sqrt(3 / math.prod(shape[1:]))
    return 0.1 * v + (1.0 if norm else 0.0)


def filled(keys: Mapping[str, Sequence[int]], prefix: str = "") -> dict[str, Tensor]:
    """Every tensor by the formula, under its published name."""
    return {
        key: fill(prefix + key, tuple(shape), norm=key.endswith(("norm.weight", "running_var")))
        for key, shape in keys.items()
    }


def linear(name: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    """Shapes of a layer with a bias."""
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def published(
    keys: Mapping[str, Sequence[int]],
    prefix: str = "",
    scaled: Mapping[str, float] | None = None,
    **options: Any,
) -> Any:
    """The classifier that a file with these tensors holds, in float64, as its format is read.

    Every tensor has a place in it, or plays no part, and every place has a tensor of its shape.
    """
    tensors = filled(keys, prefix)
    tensors |= {key: factor * tensors[key] for key, factor in (scaled or {}).items()}
    state = StateDict(Path("published.pt"), tensors)
    format_ = recognise(state)
    mapping = format_.read(state, complete_options(format_, options, state)[0])
    model = ARCHITECTURES[mapping.architecture](**mapping.config).double()
    places = {name: mapping.name_of(name) for name in model.state_dict()}
    assert all(key in places.values() or mapping.ignores(key) for key in state)
    model.load_state_dict({name: mapping.state[key] for name, key in places.items()})
    return model.eval()


def features(n: int, d: int, name: str = "features") -> Tensor:
    """A bag of n tiles with values in [-1, 1]."""
    return _uniform(name, (n, d))


def _uniform(name: str, shape: tuple[int, ...]) -> Tensor:
    index = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64)
    seed = zlib.crc32(name.encode()) % 1000
    u = torch.remainder(torch.sin(12.9898 * index + 78.233 * seed) * 43758.5453, 1.0)
    return (2 * u - 1).reshape(shape)
