"""Tile encoders by name: pictures of tiles become feature vectors.

A new encoder is a builder, and one line at the end.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foci.errors import FociError
from foci.files.hashes import file_digest
from foci.registry import Registry
from foci.slides.image import first_line
from foci.words import listed

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class EncoderOptions:
    """What an encoder may be built from.

    Attributes:
        weights: Local file of weights, where the encoder needs one.
        device: Torch device.
    """

    weights: Path | None = None
    device: str = "cpu"


@dataclass(frozen=True, eq=False)
class Encoder:
    """A tile encoder, ready to use.

    Attributes:
        name: As TRIDENT spells it, where TRIDENT has it; part of the feature folder's name.
        width: Length D of a feature vector.
        encode: ``[B, H, W, 3]`` uint8 to ``[B, D]`` float32.
        weights_sha256: Of the file of weights; None where there is none.
    """

    name: str
    width: int
    encode: Callable[[NDArray[np.uint8]], NDArray[np.float32]]
    weights_sha256: str | None = None


# The toy encoder: colours and edges of a tile, for trying the way without weights and a GPU. It
# knows nothing of pathology; the same pixels give the same features on every machine.

BINS = 9
TOY_WIDTH = 3 * (2 + 3 + BINS + 2)
"""Per colour: mean and deviation, three quantiles, a histogram, two edge strengths."""

_QUANTILES = (0.1, 0.5, 0.9)
_DENSITY = -np.log((np.arange(256) + 1) / 256)
"""Optical density of every value of a pixel: stain adds up in it, light does not."""

_TYPICAL = np.array([*[0.25] * 5, *[1 / BINS] * BINS] * 3 + [0.1] * 6)
_LEAST = 0.01


def toy(options: EncoderOptions) -> Encoder:
    """The toy encoder; it takes no weights."""
    if options.weights is not None:
        raise FociError(options.weights, "is not needed by the toy encoder", "leave --weights out")
    return Encoder("toy", TOY_WIDTH, encode)


def encode(tiles: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Features of a batch of tiles, ``[B, H, W, 3]`` to ``[B, 48]``."""
    features = []
    for tile in tiles:
        colours = np.ascontiguousarray(tile.transpose(2, 0, 1))
        counts = [np.bincount(colour.ravel(), minlength=256) for colour in colours]
        measured = np.concatenate([*(_spread(one) for one in counts), _edges(colours)])
        # on a log scale a little of a rare colour shows
        features.append(np.log((measured + _LEAST) / _TYPICAL))
    return np.stack(features).astype(np.float32)


def _spread(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean, deviation, quantiles and histogram of one colour's optical density."""
    share = counts / counts.sum()
    mean = share @ _DENSITY
    deviation = np.sqrt(share @ (_DENSITY - mean) ** 2)
    below = np.cumsum(share)
    quantiles = _DENSITY[np.searchsorted(below, _QUANTILES)]
    bins = np.add.reduceat(share, np.arange(BINS) * 256 // BINS)
    return np.concatenate([[mean, deviation], quantiles, bins])


def _edges(colours: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Mean step between neighbouring pixels, in each colour and both directions."""
    values = np.ascontiguousarray(colours[:, ::2, ::2]).astype(np.int16)
    steps = [np.abs(np.diff(values, axis=axis)) for axis in (2, 1)]
    return np.concatenate([step.reshape(3, -1).mean(axis=1) for step in steps]) / 64


# Weights of a local file, read without executing anything


def read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors by name, of a ``.safetensors`` file or a ``state_dict`` saved by ``torch.save``."""
    if not path.is_file():
        raise FociError(path, "does not exist", "give the downloaded weights with --weights")
    import torch

    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            content: Any = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError:
        what = "holds pickled objects, which FOCI does not execute"
        raise FociError(path, what, "give the model's state_dict or .safetensors file") from None
    except Exception as error:  # safetensors and torch raise errors of many kinds
        what = f"cannot be read ({first_line(error)})"
        raise FociError(path, what, "download it again") from error
    if not isinstance(content, dict) or not all(
        isinstance(value, torch.Tensor) for value in content.values()
    ):
        raise FociError(path, "is not a state_dict of tensors", "give the encoder's weights")
    return content


def fit_weights(model: nn.Module, state: dict[str, Tensor], path: Path) -> None:
    """Put the tensors of a file into a model; names and shapes that differ are refused.

    The model may be on the meta device: its parameters become the tensors themselves.
    """
    own = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in state.items()}
    shapes = [
        f"{name} {found[name]} instead of {own[name]}"
        for name in own
        if name in found and found[name] != own[name]
    ]
    problems = {
        "missing": [name for name in own if name not in found],
        "unexpected": [name for name in found if name not in own],
        "of another shape": shapes,
    }
    differs = [
        f"{len(names)} {what} ({listed(names)})" for what, names in problems.items() if names
    ]
    if differs:
        raise FociError(
            path, f"holds other weights: {'; '.join(differs)}", "give this encoder's own file"
        )
    model.load_state_dict(state, assign=True)


# UNI2-h (ViT-H/14 with 8 registers, 1,536 features per tile), built by timm, from local weights.
# The weights are gated: whoever may use them downloads ``pytorch_model.bin`` or
# ``model.safetensors`` of MahmoodLab/UNI2-h and gives the file. Nothing is fetched from a network.

UNI2H_WIDTH, PIXELS = 1536, 224
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet. timm's default configuration of this architecture says 0.5, which is wrong here."""


def uni2h(options: EncoderOptions) -> Encoder:
    """UNI2-h with the weights of a local file.

    Raises:
        FociError: If there is no file, or its tensors are not those of UNI2-h.
    """
    if options.weights is None:
        fix = "give the downloaded pytorch_model.bin or model.safetensors with --weights"
        raise FociError("uni2-h", "needs its weights, which are gated", fix)
    import torch

    state = read_weights(options.weights)
    with torch.device("meta"):
        model = create()
    fit_weights(model, state, options.weights)
    ready = model.float().eval().requires_grad_(False).to(options.device)
    return Encoder(
        "uni_v2",
        UNI2H_WIDTH,
        lambda tiles: embed(ready, tiles, options.device),
        file_digest(options.weights),
    )


def create(**changes: Any) -> nn.Module:
    """The architecture, with random weights.

    Args:
        **changes: Replace timm's keyword arguments (``depth=1`` for a shallow copy).
    """
    import torch

    try:
        import timm
    except ImportError as error:
        fix = "pip install 'foci-mil[encode]', with the torchvision that fits your torch"
        raise FociError("timm", f"cannot be loaded ({error})", fix) from error
    arguments = {
        "img_size": PIXELS,
        "patch_size": 14,
        "depth": 24,
        "num_heads": 24,
        "init_values": 1e-5,
        "embed_dim": UNI2H_WIDTH,
        "mlp_ratio": 2.66667 * 2,
        "num_classes": 0,
        "no_embed_class": True,
        "mlp_layer": timm.layers.SwiGLUPacked,
        "act_layer": torch.nn.SiLU,
        "reg_tokens": 8,
        "dynamic_img_size": True,
    }
    model: nn.Module = timm.create_model(
        "vit_giant_patch14_224", pretrained=False, **{**arguments, **changes}
    )
    return model


def embed(model: nn.Module, tiles: NDArray[np.uint8], device: str) -> NDArray[np.float32]:
    """Features of a batch of tiles; on a GPU in bfloat16, as UNI2-h is usually run."""
    import torch

    pixels = to_input(tiles).to(device)
    gpu = device.startswith("cuda")
    with torch.inference_mode(), torch.autocast(device.split(":")[0], torch.bfloat16, enabled=gpu):
        features: NDArray[np.float32] = model(pixels).float().cpu().numpy()
    return features


def to_input(tiles: NDArray[np.uint8]) -> Tensor:
    """Scale tiles ``[B, H, W, 3]`` to 224 pixels and normalise them as ImageNet is.

    The result is ``[B, 3, 224, 224]`` float32.
    """
    import torch
    from PIL import Image

    size = (PIXELS, PIXELS)
    scaled = [np.asarray(Image.fromarray(t).resize(size, Image.Resampling.BILINEAR)) for t in tiles]
    pixels = (np.stack(scaled).astype(np.float32) / 255 - MEAN) / DEVIATION
    return torch.from_numpy(pixels.astype(np.float32)).permute(0, 3, 1, 2).contiguous()


ENCODERS: Registry[Callable[[EncoderOptions], Encoder]] = Registry("encoder", "foci.encoders")
ENCODERS.add("uni2-h", uni2h)
ENCODERS.add("toy", toy)
