"""AttriMIL checkpoints, as published (no projection) or with an ``alignment`` layer in front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foci.backbones.checkpoints.formats.base import CheckpointFormat, KeyMapping, gated_names
from foci.backbones.checkpoints.state_dict import StateDict


def _read(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    n_classes = state.count("attention_nets.{}.attention_c.weight")
    names = {"adaptor.0": "adaptor.0", "adaptor.2": "adaptor.2", "beta": "bias"}
    for c in range(n_classes):
        names |= gated_names(f"attention.{c}", f"attention_nets.{c}")
        names[f"scorers.{c}"] = f"classifiers.{c}"
    projected = "alignment.0.weight" in state
    if projected:
        names["projection.0"] = "alignment.0"
    config = {
        "d_in": state.columns("alignment.0.weight" if projected else "adaptor.0.weight"),
        "n_classes": n_classes,
        "d": state.rows("alignment.0.weight") if projected else None,
        "hidden": state.rows("attention_nets.0.attention_a.0.weight"),
        "adaptor_hidden": state.rows("adaptor.0.weight"),
        "projection_bias": not projected or "alignment.0.bias" in state,
    }
    return KeyMapping("attrimil", config, names, state)


FORMATS = (
    CheckpointFormat(
        "AttriMIL",
        has=("attention_nets.0.attention_c.weight", "classifiers.0.weight", "bias"),
        read=_read,
    ),
)
