"""UNI2-h (ViT-H/14 with 8 registers, 1,536 features per tile), built by timm, from local weights.

The weights are gated: whoever may use them downloads ``pytorch_model.bin`` or
``model.safetensors`` of MahmoodLab/UNI2-h and gives the file. Nothing is fetched from a network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foci.errors import FociError
from foci.slides.encoders.encoder import Encoder, EncoderOptions
from foci.slides.encoders.weights import file_sha256, fit_weights, read_weights

if TYPE_CHECKING:
    from torch import Tensor, nn

WIDTH, PIXELS = 1536, 224
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet. timm's default configuration of this architecture says 0.5, which is wrong here."""


def build(options: EncoderOptions) -> Encoder:
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
        WIDTH,
        lambda tiles: embed(ready, tiles, options.device),
        file_sha256(options.weights),
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
        "embed_dim": WIDTH,
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
    """Scale tiles to 224 pixels and normalise them with ImageNet's mean and deviation.

    Args:
        tiles: ``[B, H, W, 3]``.

    Returns:
        ``[B, 3, 224, 224]`` float32.
    """
    import torch
    from PIL import Image

    size = (PIXELS, PIXELS)
    scaled = [np.asarray(Image.fromarray(t).resize(size, Image.Resampling.BILINEAR)) for t in tiles]
    pixels = (np.stack(scaled).astype(np.float32) / 255 - MEAN) / DEVIATION
    return torch.from_numpy(pixels.astype(np.float32)).permute(0, 3, 1, 2).contiguous()
