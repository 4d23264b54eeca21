"""ACMIL checkpoints (gated or multi-head) and ASMIL's, which share their tensor names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foci.backbones.checkpoints.formats.base import CheckpointFormat, KeyMapping, Option
from foci.backbones.checkpoints.state_dict import StateDict

_IGNORED = ("dimreduction.bn.*",)
"""A normalisation that the released ASMIL code creates and never applies."""

_SCORE = Option("logits", choices=("logits", "softmax"), predicts=False)
_HEADS = Option(8, "heads=8, as published", tries=(4, 16, 2, 1))


def _read(
    state: StateDict,
    architecture: str,
    branches: int,
    names: dict[str, str],
    widths: Mapping[str, Any],
) -> KeyMapping:
    names = {**names, "projection.0": "dimreduction.fc1", "head": "Slide_classifier.fc"}
    names |= {f"branch_heads.{r}": f"classifier.{r}.fc" for r in range(branches)}
    config = {
        "d_in": state.columns("dimreduction.fc1.weight"),
        "n_classes": state.rows("Slide_classifier.fc.weight"),
        "d": state.rows("dimreduction.fc1.weight"),
        "branches": branches,
        **widths,
    }
    return KeyMapping(architecture, config, names, state, _IGNORED)


def _gated(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    names = {
        "attention.V": "attention.attention_V.0",
        "attention.U": "attention.attention_U.0",
        "attention.w": "attention.attention_weights",
    }
    hidden = state.rows("attention.attention_V.0.weight")
    branches = state.rows("attention.attention_weights.weight")
    return _read(state, "acmil", branches, names, {"hidden": hidden, **options})


def _readout_names(ours: str, theirs: str) -> dict[str, str]:
    layers = {"v": "v_proj", "out": "out_proj", "norm": "layer_norm"}
    return {f"{ours}.{mine}": f"{theirs}.{their}" for mine, their in layers.items()}


def _attention_names(ours: str, theirs: str) -> dict[str, str]:
    queried = {f"{ours}.{part}": f"{theirs}.{part}_proj" for part in "qk"}
    return queried | _readout_names(ours, theirs)


def _query_names(branches: int) -> dict[str, str]:
    names = {"branches.queries": "q"}
    for r in range(branches):
        names |= _attention_names(f"branches.attention.{r}", f"sub_attention.{r}")
    return names


def _multi_head(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    branches = state.count("sub_attention.{}.q_proj.weight")
    names = _query_names(branches) | _readout_names("bag", "bag_attention")
    return _read(state, "acmil-mha", branches, names, options)


def _asmil(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    branches = state.count("sub_attention.{}.q_proj.weight")
    names = _query_names(branches) | _attention_names("bag", "bag_attention")
    names["class_query"] = "cls"
    return _read(state, "asmil-query", branches, names, options)


FORMATS = (
    CheckpointFormat(
        "ACMIL",
        has=("Slide_classifier.fc.weight", "attention.attention_weights.weight"),
        read=_gated,
        options={"score": _SCORE},
    ),
    CheckpointFormat(
        "ACMIL with multi-head attention",
        has=("Slide_classifier.fc.weight", "sub_attention.0.q_proj.weight"),
        lacks=("cls",),
        read=_multi_head,
        options={"heads": _HEADS, "score": _SCORE},
    ),
    CheckpointFormat(
        "ASMIL",
        has=("Slide_classifier.fc.weight", "sub_attention.0.q_proj.weight", "cls"),
        read=_asmil,
        options={"heads": _HEADS, "score": _SCORE},
    ),
)
