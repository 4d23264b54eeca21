"""Weights and features from a formula, so that published values need no stored tensors.

For a tensor NAME and flat index i: ``u = frac(sin(12.9898 (i+1) + 78.233 (crc32(NAME) mod 1000))
* 43758.5453)`` and ``v = 2u - 1`` in float64.
"""

import json
import math
import zlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def golden(name: str) -> dict[str, Any]:
    """What the published code returned under these weights."""
    content: dict[str, Any] = json.loads(
        (Path(__file__).parent / "golden" / f"{name}.json").read_text()
    )
    return content


def fill(name: str, shape: tuple[int, ...], *, norm: bool = False) -> Tensor:
    """Weights: ``v sqrt(3 / fan_in)`` for matrices, ``0.1 v`` for vectors (+1 for norm weights)."""
    v = _uniform(name, shape)
    if len(shape) >= 2:
        return v * math.sqrt(3 / math.prod(shape[1:]))
    return 0.1 * v + (1.0 if norm else 0.0)


def nystrom_weights(keys: dict[str, list[int]], names: dict[str, str]) -> dict[str, Tensor]:
    """TransMIL or MHIM-MIL with Nyström layers, under our names of the published tensors.

    ``names`` are those of the tensors that the two name differently.
    """
    blocks = {
        "norm": "norm",
        "attn.to_qkv": "attention.qkv",
        "attn.to_out.0": "attention.output",
        "attn.res_conv": "attention.residual",
    }
    layers = {f"layer{i}.{k}": f"layer{i}.{v}" for i in (1, 2) for k, v in blocks.items()}
    ours = {"cls_token": "cls", "norm": "norm", **layers, **names}
    weights = {}
    for key, shape in keys.items():
        name = key.removeprefix("online_encoder.")
        stem, _, kind = name.rpartition(".")
        norm = stem.endswith("norm") and kind == "weight"
        place = ours[name] if name in ours else f"{ours[stem]}.{kind}"
        weights[place] = fill(key, tuple(shape), norm=norm)
    return weights


def features(n: int, d: int, name: str = "features") -> Tensor:
    """A bag of n tiles with values in [-1, 1]."""
    return _uniform(name, (n, d))


def _uniform(name: str, shape: tuple[int, ...]) -> Tensor:
    index = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64)
    seed = zlib.crc32(name.encode()) % 1000
    u = torch.remainder(torch.sin(12.9898 * index + 78.233 * seed) * 43758.5453, 1.0)
    return (2 * u - 1).reshape(shape)
