"""CLAM checkpoints, single and multi branch, gated or not, of the authors and of MIL-Lab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foci.backbones.checkpoints.formats.base import (
    MIL_LAB_PROJECTION,
    CheckpointFormat,
    KeyMapping,
    Option,
    gated_names,
    projection_activation,
    projection_names,
)
from foci.backbones.checkpoints.state_dict import StateDict

_IGNORED = ("instance_loss_fn.labels",)
_ACTIVATION = {
    "projection_activation": projection_activation(
        "relu", "as the authors train it (MHIM-MIL's CLAM may have GELU)"
    )
}
_PLUS_ONE = Option(
    False,
    "plus_one=False: a softmax over the tiles, as the authors pool; give plus_one=True for weights "
    "of the ACMIL code, which adds 1 to its denominator",
    (False, True),
)


def attention_names(state: StateDict, net: str) -> dict[str, str]:
    """Key names of an attention net: gated, or plain with or without dropout."""
    if f"{net}.module.0.weight" not in state:
        return gated_names("attention", net)
    last = 3 if f"{net}.module.3.weight" in state else 2
    return {"attention.V": f"{net}.module.0", "attention.w": f"{net}.module.{last}"}


def _read(
    state: StateDict,
    architecture: str,
    n_classes: int,
    names: dict[str, str],
    net: str,
    options: Mapping[str, Any],
) -> KeyMapping:
    names = {**names, **attention_names(state, net)}
    names |= {f"instance_classifiers.{c}": f"instance_classifiers.{c}" for c in range(n_classes)}
    projection = f"{names['projection.0']}.weight"
    config = {
        "d_in": state.columns(projection),
        "n_classes": n_classes,
        "d": state.rows(projection),
        "hidden": state.rows(f"{names['attention.V']}.weight"),
        "gated": "attention.U" in names,
        **options,
    }
    return KeyMapping(architecture, config, names, state, _IGNORED)


def _net(state: StateDict) -> str:
    """Without dropout, code before April 2024 put the attention at index 2."""
    dropout = any(key.startswith("attention_net.3.") for key in state)
    return "attention_net.3" if dropout else "attention_net.2"


def _single(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    names = {"projection.0": "attention_net.0", "head": "classifiers"}
    return _read(state, "clam-sb", state.rows("classifiers.weight"), names, _net(state), options)


def _multi(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    n_classes = state.count("classifiers.{}.weight")
    names = {"projection.0": "attention_net.0"}
    names |= {f"heads.{c}": f"classifiers.{c}" for c in range(n_classes)}
    return _read(state, "clam-mb", n_classes, names, _net(state), options)


def _mil_lab(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    projection = projection_names(state, MIL_LAB_PROJECTION)
    names = {**projection, "head": "classifier"}
    depth = {"projection_layers": len(projection)}
    n_classes = state.rows("classifier.weight")
    return _read(state, "clam-sb", n_classes, names, "global_attn", {**options, **depth})


FORMATS = (
    CheckpointFormat(
        "CLAM-SB",
        has=("attention_net.0.weight", "classifiers.weight"),
        read=_single,
        options=_ACTIVATION,
    ),
    CheckpointFormat(
        "CLAM-MB",
        has=("attention_net.0.weight", "classifiers.0.weight"),
        read=_multi,
        options={**_ACTIVATION, "plus_one": _PLUS_ONE},
    ),
    CheckpointFormat(
        "CLAM-SB of MIL-Lab",
        has=("patch_embed.0.weight", "global_attn.*", "instance_classifiers.0.weight"),
        read=_mil_lab,
    ),
)
