"""ABMIL checkpoints of its authors and of other projects that implement it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from foci.backbones.checkpoints.formats.base import CheckpointFormat, KeyMapping, Option, two_logits
from foci.backbones.checkpoints.formats.clam import attention_names
from foci.backbones.checkpoints.state_dict import StateDict

_WRAP = "wrap the model in foci.backbones.CallableBackbone"
_ACTIVATION = Option(
    "tanh", "activation='tanh' in the attention, the default", ("tanh", "relu", "gelu")
)


@dataclass(frozen=True)
class _Layout:
    """Layer names of one project's ABMIL.

    Attributes:
        V: First layer of the attention, followed by its activation.
        w: Its last layer.
        head: The classifier.
        U: The gate; None where there is none, and optional in a file where given.
        projection: In front, followed by ReLU; None, or absent in a file, for no projection.
    """

    V: str
    w: str
    head: str
    U: str | None = None
    projection: str | None = None

    def read(self, state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
        """Map the keys of a file with these layer names."""
        names = {"attention.V": self.V, "attention.w": self.w, "head": self.head}
        gated = self.U is not None and f"{self.U}.weight" in state
        if self.U is not None and gated:
            names["attention.U"] = self.U
        state, n_classes, notes = two_logits(state, self.head)
        first, d, bias = f"{self.V}.weight", None, True
        if self.projection is not None and f"{self.projection}.weight" in state:
            names["projection.0"] = self.projection
            first = f"{self.projection}.weight"
            d, bias = state.rows(first), f"{self.projection}.bias" in state
        config = {
            "d_in": state.columns(first),
            "n_classes": n_classes,
            "d": d,
            "hidden": state.rows(f"{self.V}.weight"),
            "gated": gated,
            "projection_bias": bias,
            **options,
        }
        return KeyMapping("abmil", config, names, state, ("dimreduction.bn.*",), notes)


def _ilse(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    if any(key.startswith("feature_extractor_part1.") for key in state):
        raise state.refused(
            "is the ABMIL for images, with convolutions in front",
            "FOCI reads features: train the attention part on them",
        )
    plain = "attention_V.0.weight" not in state
    V, w = ("attention.0", "attention.2") if plain else ("attention_V.0", "attention_w")
    if "attention_weights.weight" in state:  # its name before June 2023
        w = "attention_weights"
    gate = None if plain else "attention_U.0"
    return _Layout(V, w, "classifier.0", gate, "feature_extractor_part2.0").read(state, options)


def _mil_lab(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    names = attention_names(state, "global_attn")
    layout = _Layout(
        names["attention.V"],
        names["attention.w"],
        "classifier",
        names.get("attention.U"),
        "patch_embed.0",
    )
    return layout.read(state, options)


def _torchmil(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    if any(key.startswith("feat_ext.") for key in state):
        raise state.refused("has a feature extractor of its own (feat_ext)", _WRAP)
    no_bias = {"pool.fc2.bias": torch.zeros(state.rows("pool.fc2.weight"))}
    layout = _Layout("pool.fc1.module", "pool.fc2", "classifier.module", "pool.fc_gated.module")
    return layout.read(state.replaced(no_bias), options)


def _residual_adaptor(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    raise state.refused("is AttriMIL's ABMIL, with a residual adaptor that FOCI's lacks", _WRAP)


FORMATS = (
    CheckpointFormat("ABMIL", has=("attention_V.0.weight", "classifier.0.weight"), read=_ilse),
    CheckpointFormat(
        "ABMIL without gate",
        has=("attention.0.weight", "attention.2.weight", "classifier.0.weight"),
        lacks=("feature.0.weight",),
        read=_ilse,
    ),
    CheckpointFormat(
        "ABMIL of the ACMIL code",
        has=(
            "dimreduction.fc1.weight",
            "attention.attention_weights.weight",
            "classifier.fc.weight",
        ),
        read=_Layout(
            "attention.attention_V.0",
            "attention.attention_weights",
            "classifier.fc",
            "attention.attention_U.0",
            "dimreduction.fc1",
        ).read,
    ),
    CheckpointFormat(
        "ABMIL of the MHIM-MIL code",
        has=("feature.0.weight", "attention.0.weight", "classifier.0.weight"),
        read=_Layout("attention.0", "attention.2", "classifier.0", projection="feature.0").read,
    ),
    CheckpointFormat(
        "ABMIL of MIL-Lab",
        has=("patch_embed.0.weight", "global_attn.*"),
        lacks=("instance_classifiers.0.weight",),
        read=_mil_lab,
    ),
    CheckpointFormat(
        "ABMIL of xMIL",
        has=("linear_layers.0.0.weight", "attention.0.weight", "classifier.weight"),
        read=_Layout(
            "attention.0", "attention.2", "classifier", projection="linear_layers.0.0"
        ).read,
    ),
    CheckpointFormat(
        "ABMIL of torchmil",
        has=("pool.fc1.module.weight", "pool.fc2.weight", "classifier.module.weight"),
        read=_torchmil,
        options={"activation": _ACTIVATION},
    ),
    CheckpointFormat(
        "ABMIL of the AttriMIL code",
        has=("adaptor.0.weight", "attention_net.attention_c.weight"),
        read=_residual_adaptor,
    ),
)
