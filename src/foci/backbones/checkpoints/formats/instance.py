"""Checkpoints of mean and max pooling, and of CLAM's MIL_fc and MIL_fc_mc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from foci.backbones.checkpoints.formats.base import CheckpointFormat, KeyMapping, Option, two_logits
from foci.backbones.checkpoints.state_dict import StateDict

_OPTIONS: Mapping[str, Option] = {
    "pooling": Option(None, choices=("mean", "max")),
    "projection_activation": Option(
        "relu", "projection_activation='relu', the default", ("relu", "gelu")
    ),
}


def _read(
    state: StateDict, architecture: str, projection: str, head: str, **widths: Any
) -> KeyMapping:
    first = f"{projection}.weight"
    config = {
        "d_in": state.columns(first),
        "n_classes": state.rows(f"{head}.weight"),
        "d": state.rows(first),
        "projection_bias": f"{projection}.bias" in state,
        **widths,
    }
    return KeyMapping(architecture, config, {"projection.0": projection, "head": head}, state)


def _last(state: StateDict, net: str) -> str:
    """The second layer of a two-layer net, after a dropout or not."""
    return f"{net}.3" if f"{net}.3.weight" in state else f"{net}.2"


def _mean_or_max(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    if options["pooling"] is None:
        raise state.refused(
            "is MeanMIL or MaxMIL, whose files look alike", "give pooling='mean' or pooling='max'"
        )
    head = _last(state, "head")
    state, _, notes = two_logits(state, head)
    activation = options["projection_activation"]
    name = f"{options['pooling']}-mil"
    mapping = _read(state, name, "head.0", head, projection_activation=activation)
    return replace(mapping, notes=notes)


def _mil_fc(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    return _read(state, "mil-fc", "fc.0", "classifier")


def _mil_fc_mc(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    return _read(state, "mil-fc", "fc.0", "classifiers")


def _earlier(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    return _read(state, "mil-fc", "classifier.0", _last(state, "classifier"))


def _earlier_mc(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    """One linear layer per class, put together."""
    n_classes, joined = state.count("classifiers.{}.weight"), {}
    for part in ("weight", "bias"):
        rows = [f"classifiers.{c}.{part}" for c in range(n_classes)]
        joined[f"classifiers.{part}"] = torch.cat([state[row] for row in rows])
    others = {key: state[key] for key in state if not key.startswith("classifiers.")}
    return _mil_fc_mc(StateDict(state.path, {**others, **joined}, state.notes), options)


FORMATS = (
    CheckpointFormat("MIL_fc of CLAM", has=("fc.0.weight", "classifier.weight"), read=_mil_fc),
    CheckpointFormat(
        "MIL_fc_mc of CLAM", has=("fc.0.weight", "classifiers.weight"), read=_mil_fc_mc
    ),
    CheckpointFormat(
        "MIL_fc of CLAM before April 2024",
        has=("classifier.0.weight", "classifier.[23].weight"),
        read=_earlier,
    ),
    CheckpointFormat(
        "MIL_fc_mc of CLAM before April 2024",
        has=("fc.0.weight", "classifiers.0.weight"),
        read=_earlier_mc,
    ),
    CheckpointFormat(
        "MeanMIL/MaxMIL",
        has=("head.0.weight", "head.[23].weight"),
        read=_mean_or_max,
        options=_OPTIONS,
    ),
)
