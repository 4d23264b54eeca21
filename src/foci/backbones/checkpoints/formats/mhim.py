"""MHIM-MIL checkpoints, versions 1 and 2, with attention, self-attention or DSMIL encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foci.backbones.checkpoints.formats import dsmil
from foci.backbones.checkpoints.formats.base import (
    CheckpointFormat,
    KeyMapping,
    Option,
    gated_names,
    projection_activation,
    two_logits,
)
from foci.backbones.checkpoints.formats.transmil import LANDMARKS, nystrom_names, ppeg_names
from foci.backbones.checkpoints.state_dict import StateDict

_Read = Callable[[StateDict, Mapping[str, Any]], KeyMapping]

_ENCODER = "online_encoder"
_IGNORED = ("merge.*",)
_MERGING = (
    "merge.* left out: merging of tiles belongs to training; a model that was evaluated with "
    "merge_test predicts differently"
)
_ATTENTION_ACTIVATION = Option(
    "relu",
    "activation='relu' in the attention, the authors' default",
    ("relu", "gelu", "tanh"),
)


def _read(
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
    return KeyMapping(architecture, config, names, state, _IGNORED, notes)


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
        return _read(state, "mhim", projection, names, widths)

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
        return _read(state, "mhim-selfattn", projection, names, widths)

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
            read=dsmil.dsmil(
                f"{_ENCODER}.i_classifier.0",
                f"{_ENCODER}.b_classifier",
                projection,
                ignored=("predictor.*", *_IGNORED),
            ),
            options={**dsmil.OPTIONS, "projection_activation": activation},
        ),
    )


FORMATS = (
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
