"""TransMIL checkpoints with Nyström attention, of the authors (also Lightning) and of MIL-Lab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foci.backbones.checkpoints.formats.base import CheckpointFormat, KeyMapping, Option, two_logits
from foci.backbones.checkpoints.state_dict import StateDict

LANDMARKS = Option(None, "landmarks: half the token width, as published")
_OPTIONS = {
    "aligned": Option(
        True,
        "aligned=True: every token gets its own row of the attention, as in nystrom-attention "
        "0.0.11 and later; give aligned=False for weights of 0.0.9, which the authors pin",
        (True, False),
    ),
    "landmarks": LANDMARKS,
}


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
        "heads": state.rows(f"{names['layer1.attention.residual']}.weight"),
        **options,
    }
    return KeyMapping("transmil-nystrom", config, names, state, notes=notes)


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
    layers = state.count("blocks.{}.norm.weight")
    if layers != 2:
        raise state.refused(
            f"is a TransMIL with {layers} layers, FOCI's has 2",
            "wrap the model in foci.backbones.CallableBackbone",
        )
    names = {
        "projection.0": "patch_embed.0",
        "cls": "cls_token",
        **nystrom_names("layer1", "blocks.0", "attention"),
        **ppeg_names("pos_layer"),
        **nystrom_names("layer2", "blocks.1", "attention"),
        "norm": "norm",
        "head": "classifier",
    }
    return _read(state, options, names)


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
        options=_OPTIONS,
    ),
)
