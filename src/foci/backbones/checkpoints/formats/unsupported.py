"""Architectures that are recognised by their tensors and refused by their name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foci.backbones.checkpoints.formats.base import CheckpointFormat, KeyMapping
from foci.backbones.checkpoints.state_dict import StateDict
from foci.errors import CheckpointError

WRAP = (
    "wrap the model: foci.backbones.CallableBackbone(function, d_in=..., n_classes=...) needs only "
    "a function from features to logits"
)

SEPARATE_PARTS = {"classifier", "dim_reduction", "attention", "att_classifier"}
"""Entries of a file of DTFD-MIL's authors: one state dict for each part of the model."""


def unsupported(name: str, where: Any) -> CheckpointError:
    """Refusal that names the architecture and the way around it."""
    return CheckpointError(where, f"is {name}, which FOCI does not have", WRAP)


def _named(name: str, *has: str) -> CheckpointFormat:
    def read(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
        raise unsupported(name, state.path)

    return CheckpointFormat(name, has=has, read=read)


FORMATS = (
    _named("DTFD-MIL", "UClassifier.*", "dimReduction.*"),
    _named("DTFD-MIL", "attCls.*"),
    _named("RRT-MIL", "online_encoder.layers.0.*", "predictor.weight"),
    _named("RRT-MIL", "encoder.layer1.attn.*", "encoder.pool_fn.*"),
    _named("WiKG", "W_head.weight", "W_tail.weight"),
    _named("ILRA", "gab_blocks.0.latent"),
    _named("MambaMIL", "*.A_log"),
)
