"""TransMIL checkpoints with Nyström attention, of the authors (also Lightning) and of MIL-Lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foci.backbones.checkpoints.formats.base import (
    MIL_LAB_PROJECTION,
    CheckpointFormat,
    KeyMapping,
    Option,
    projection_activation,
    projection_names,
    two_logits,
    with_biases,
)
from foci.backbones.checkpoints.state_dict import StateDict

LANDMARKS = Option(None, "landmarks: half the token width, as published", tries=(256, 128, 64, 512))
_ALIGNED = Option(
    True,
    "aligned=True: every token gets its own row of the attention, as in nystrom-attention "
    "0.0.11 and later; give aligned=False for weights of 0.0.9, which the authors pin",
    (True, False),
)
_OPTIONS = {
    "aligned": _ALIGNED,
    "landmarks": LANDMARKS,
    "projection_activation": projection_activation(
        "relu", "as the authors train it (MHIM-MIL's TransMIL may have GELU)"
    ),
}
_MHIM_OPTIONS = {
    "landmarks": LANDMARKS,
    "projection_activation": projection_activation(
        "gelu", "from the configuration shipped with MHIM-MIL v2"
    ),
}
_DOT_PRODUCT = (
    "attention: Nystrom, xMIL's default; its attention='dot_prod' has the same tensors and is not "
    "supported"
)


def nystrom_names(ours: str, theirs: str, attention: str = "attn") -> dict[str, str]:
    """Key names of one Nyström layer: norm, qkv, output and residual convolution."""
    return {
        f"{ours}.norm": f"{theirs}.norm",
        f"{ours}.attention.qkv": f"{theirs}.{attention}.to_qkv",
        f"{ours}.attention.output": f"{theirs}.{attention}.to_out.0",
        f"{ours}.attention.residual": f"{theirs}.{attention}.res_conv",
    }


def ppeg_names(theirs: str) -> dict[str, str]:
    """Key names of the three convolutions of the position encoding."""
    kernels = {"conv7": "proj", "conv5": "proj1", "conv3": "proj2"}
    return {f"position.{mine}": f"{theirs}.{their}" for mine, their in kernels.items()}


def _read(state: StateDict, options: Mapping[str, Any], names: dict[str, str]) -> KeyMapping:
    state, n_classes, notes = two_logits(state, names["head"])
    projection = f"{names['projection.0']}.weight"
    config = {
        "d_in": state.columns(projection),
        "n_classes": n_classes,
        "d": state.rows(projection),
        "projection_layers": sum(name.startswith("projection.") for name in names),
        "heads": state.rows(f"{names['layer1.attention.residual']}.weight"),
        **options,
    }
    return KeyMapping("transmil-nystrom", config, names, state, notes=notes)


def _two_layers(state: StateDict, key: str) -> None:
    layers = state.count(key)
    if layers != 2:
        raise state.refused(
            f"is a TransMIL with {layers} layers, FOCI's has 2",
            "wrap the model in foci.backbones.CallableBackbone",
        )


def _official(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    names = {
        "projection.0": "_fc1.0",
        "cls": "cls_token",
        **nystrom_names("layer1", "layer1"),
        **ppeg_names("pos_layer"),
        **nystrom_names("layer2", "layer2"),
        "norm": "norm",
        "head": "_fc2",
    }
    return _read(state, options, names)


def _mil_lab(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    _two_layers(state, "blocks.{}.norm.weight")
    names = {
        **projection_names(state, MIL_LAB_PROJECTION),
        "cls": "cls_token",
        **nystrom_names("layer1", "blocks.0", "attention"),
        **ppeg_names("pos_layer"),
        **nystrom_names("layer2", "blocks.1", "attention"),
        "norm": "norm",
        "head": "classifier",
    }
    return _read(state, options, names)


def _mhim(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    names = {
        "projection.0": "feature.0",
        "cls": "cls_token",
        **nystrom_names("layer1", "layer1"),
        **ppeg_names("pos_layer"),
        **nystrom_names("layer2", "layer2"),
        "norm": "norm",
        "head": "classifier",
    }
    return _read(state, options, names)


def _xmil(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    _two_layers(state, "translayers.{}.norm.weight")
    names = {
        "projection.0": "_fc1.0",
        "cls": "cls_token",
        **nystrom_names("layer1", "translayers.0"),
        **ppeg_names("pos_layer"),
        **nystrom_names("layer2", "translayers.1"),
        "norm": "norm",
        "head": "_fc2",
    }
    unbiased = ("_fc1.0", "translayers.0.attn.to_out.0", "translayers.1.attn.to_out.0", "_fc2")
    mapping = _read(with_biases(state, *unbiased), options, names)
    # xMIL computes these layers and does not use what they return
    return replace(mapping, ignored=("mlp_layers.*",), notes=(*mapping.notes, _DOT_PRODUCT))


FORMATS = (
    CheckpointFormat(
        "TransMIL",
        has=("_fc1.0.weight", "layer1.attn.res_conv.weight"),
        read=_official,
        options=_OPTIONS,
    ),
    CheckpointFormat(
        "TransMIL of MIL-Lab",
        has=("patch_embed.0.weight", "blocks.0.attention.res_conv.weight"),
        read=_mil_lab,
        options={"aligned": _ALIGNED, "landmarks": LANDMARKS},
    ),
    CheckpointFormat(
        "TransMIL of the MHIM-MIL code",
        has=("feature.0.weight", "layer1.attn.res_conv.weight", "classifier.weight"),
        read=_mhim,
        options=_MHIM_OPTIONS,
    ),
    CheckpointFormat(
        "TransMIL of xMIL",
        has=("_fc1.0.weight", "translayers.0.attn.res_conv.weight"),
        read=_xmil,
        options={"landmarks": LANDMARKS},
    ),
)
