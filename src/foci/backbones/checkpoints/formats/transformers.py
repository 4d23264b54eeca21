"""TransMIL checkpoints with Nyström attention, of the authors (also Lightning) and of MIL-Lab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from foci.backbones.checkpoints.formats import instance
from foci.backbones.checkpoints.formats.base import (
    MIL_LAB_PROJECTION,
    CheckpointFormat,
    KeyMapping,
    Option,
    gated_names,
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


def _read_transmil(
    state: StateDict, options: Mapping[str, Any], names: dict[str, str]
) -> KeyMapping:
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
    return _read_transmil(state, options, names)


def _mil_lab_transmil(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
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
    return _read_transmil(state, options, names)


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
    return _read_transmil(state, options, names)


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
    mapping = _read_transmil(with_biases(state, *unbiased), options, names)
    # xMIL computes these layers and does not use what they return
    return replace(mapping, ignored=("mlp_layers.*",), notes=(*mapping.notes, _DOT_PRODUCT))


TRANSMIL_FORMATS = (
    CheckpointFormat(
        "TransMIL",
        has=("_fc1.0.weight", "layer1.attn.res_conv.weight"),
        read=_official,
        options=_OPTIONS,
    ),
    CheckpointFormat(
        "TransMIL of MIL-Lab",
        has=("patch_embed.0.weight", "blocks.0.attention.res_conv.weight"),
        read=_mil_lab_transmil,
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


# MHIM-MIL checkpoints, versions 1 and 2, with attention, self-attention or DSMIL encoder.


_Read = Callable[[StateDict, Mapping[str, Any]], KeyMapping]

_ENCODER = "online_encoder"
_MHIM_IGNORED = ("merge.*",)
_MERGING = (
    "merge.* left out: merging of tiles belongs to training; a model that was evaluated with "
    "merge_test predicts differently"
)
_ATTENTION_ACTIVATION = Option(
    "relu",
    "activation='relu' in the attention, the authors' default",
    ("relu", "gelu", "tanh"),
)


def _read_mhim(
    state: StateDict,
    architecture: str,
    projection: str,
    names: dict[str, str],
    widths: Mapping[str, Any],
) -> KeyMapping:
    state, n_classes, notes = two_logits(state, "predictor")
    config = {
        "d_in": state.columns(f"{projection}.weight"),
        "n_classes": n_classes,
        "d": state.rows(f"{projection}.weight"),
        **widths,
    }
    names = {**names, "projection.0": projection, "head": "predictor"}
    notes += (_MERGING,) * any(key.startswith("merge.") for key in state)
    return KeyMapping(architecture, config, names, state, _MHIM_IGNORED, notes)


def _attention(projection: str) -> _Read:
    net = f"{_ENCODER}.attention"

    def read(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
        names = gated_names("attention", net)
        gated = f"{names['attention.V']}.weight" in state
        if not gated:
            last = 3 if f"{net}.attention.3.weight" in state else 2
            names = {"attention.V": f"{net}.attention.0", "attention.w": f"{net}.attention.{last}"}
        widths = {
            "hidden": state.rows(f"{names['attention.V']}.weight"),
            "gated": gated,
            "attention_bias": f"{names['attention.V']}.bias" in state,
            "projection_bias": f"{projection}.bias" in state,
            **options,
        }
        return _read_mhim(state, "mhim", projection, names, widths)

    return read


def _self_attention(projection: str) -> _Read:
    def read(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
        names = {
            "cls": f"{_ENCODER}.cls_token",
            **nystrom_names("layer1", f"{_ENCODER}.layer1"),
            **ppeg_names(f"{_ENCODER}.pos_embedding"),
            **nystrom_names("layer2", f"{_ENCODER}.layer2"),
            "norm": f"{_ENCODER}.norm",
        }
        heads = state.rows(f"{names['layer1.attention.residual']}.weight")
        widths = {
            "heads": heads,
            "head_width": state.columns(f"{names['layer1.attention.output']}.weight") // heads,
            "landmarks": options["landmarks"],
            "activation": options["projection_activation"],
        }
        return _read_mhim(state, "mhim-selfattn", projection, names, widths)

    return read


def _version(name: str, projection: str, activation: Option) -> tuple[CheckpointFormat, ...]:
    signature = (f"{projection}.weight", "predictor.weight")
    return (
        CheckpointFormat(
            name,
            has=(*signature, f"{_ENCODER}.attention.*"),
            read=_attention(projection),
            options={
                "activation": _ATTENTION_ACTIVATION,
                "projection_activation": activation,
            },
        ),
        CheckpointFormat(
            f"{name} with self-attention",
            has=(*signature, f"{_ENCODER}.cls_token"),
            read=_self_attention(projection),
            options={"landmarks": LANDMARKS, "projection_activation": activation},
        ),
        CheckpointFormat(
            f"{name} with DSMIL",
            has=(*signature, f"{_ENCODER}.b_classifier.*"),
            read=instance.dsmil(
                f"{_ENCODER}.i_classifier.0",
                f"{_ENCODER}.b_classifier",
                projection,
                ignored=("predictor.*", *_MHIM_IGNORED),
            ),
            options={**instance.OPTIONS, "projection_activation": activation},
        ),
    )


MHIM_FORMATS = (
    *_version(
        "MHIM-MIL v1",
        "patch_to_emb.0",
        projection_activation("relu", "the default of version 1"),
    ),
    *_version(
        "MHIM-MIL v2",
        "feature.0",
        projection_activation("gelu", "from the configuration shipped with version 2"),
    ),
)
