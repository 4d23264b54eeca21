"""ABMIL checkpoints of its authors and of other projects that implement it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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
from foci.backbones.checkpoints.formats.clam import attention_names
from foci.backbones.checkpoints.state_dict import StateDict

_WRAP = "wrap the model in foci.backbones.CallableBackbone"
_ACTIVATION = Option(
    "tanh", "activation='tanh' in the attention, the default", ("tanh", "relu", "gelu")
)
_MHIM_V1_ACTIVATION = Option(
    "relu",
    "activation='relu' in the attention, the default of MHIM-MIL v1",
    ("relu", "gelu", "tanh"),
)
_MHIM_V1 = projection_activation("relu", "the default of MHIM-MIL v1")
_MHIM_V2 = projection_activation("gelu", "from the configuration shipped with MHIM-MIL v2")


_Read = Callable[[StateDict, Mapping[str, Any]], KeyMapping]


@dataclass(frozen=True)
class _Layout:
    """Layer names of one project's ABMIL.

    Attributes:
        V: First layer of the attention, followed by its activation.
        w: Its last layer.
        head: The classifier.
        U: The gate; None where there is none, and optional in a file where given.
        projection: In front; None, or absent in a file, for no projection. ``{}`` stands for the
            places of its layers.
        step: Between two layers of the projection.
        ignored: Patterns of names that play no part in a prediction.
    """

    V: str
    w: str
    head: str
    U: str | None = None
    projection: str | None = None
    step: int = 3
    ignored: tuple[str, ...] = ()

    def read(self, state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
        """Map the keys of a file with these layer names."""
        names = {"attention.V": self.V, "attention.w": self.w, "head": self.head}
        gated = self.U is not None and f"{self.U}.weight" in state
        if self.U is not None and gated:
            names["attention.U"] = self.U
        state, n_classes, notes = two_logits(state, self.head)
        projection = projection_names(state, self.projection or "", self.step)
        first, d, bias = f"{self.V}.weight", None, True
        if projection:
            names |= projection
            first = f"{projection['projection.0']}.weight"
            d, bias = state.rows(first), f"{projection['projection.0']}.bias" in state
        config = {
            "d_in": state.columns(first),
            "n_classes": n_classes,
            "d": d,
            "hidden": state.rows(f"{self.V}.weight"),
            "gated": gated,
            "projection_bias": bias,
            "projection_layers": len(projection) or 1,
            **options,
        }
        return KeyMapping("abmil", config, names, state, self.ignored, notes)


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
        MIL_LAB_PROJECTION,
    )
    return layout.read(state, options)


def _torchmil(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    if any(key.startswith("feat_ext.") for key in state):
        raise state.refused("has a feature extractor of its own (feat_ext)", _WRAP)
    layout = _Layout(
        "pool.fc1.module",
        "pool.fc2",
        "classifier.module",
        "pool.fc_gated.module",
        ignored=("inst_classifiers.*", "inst_loss_fn.*"),
    )
    return layout.read(with_biases(state, "pool.fc2"), options)


def _residual_adaptor(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    attention = gated_names("attention", "attention_net")
    state, n_classes, notes = two_logits(state, "classifier")
    names = {**attention, "adaptor.0": "adaptor.0", "adaptor.2": "adaptor.2", "head": "classifier"}
    config = {
        "d_in": state.columns("adaptor.0.weight"),
        "n_classes": n_classes,
        "d": None,
        "hidden": state.rows(f"{attention['attention.V']}.weight"),
        "adaptor_hidden": state.rows("adaptor.0.weight"),
    }
    return KeyMapping("abmil", config, names, state, notes=notes)


def _mhim(first: str, last: str, head: str, gate: str | None = None) -> _Read:
    """ABMIL of the MHIM-MIL code, of which some layers may have no bias."""

    def read(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
        biased = with_biases(state, first, last, head, *([] if gate is None else [gate]))
        return _Layout(first, last, head, gate, "feature.0").read(biased, options)

    return read


_MHIM_GATED = ("feature.0.weight", "attention_a.0.weight", "classifier.0.weight")

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
            ignored=("dimreduction.bn.*",),
        ).read,
    ),
    CheckpointFormat(
        "ABMIL of the MHIM-MIL code",
        has=("feature.0.weight", "attention.0.weight", "classifier.0.weight"),
        read=_mhim("attention.0", "attention.2", "classifier.0"),
        options={"projection_activation": _MHIM_V1},
    ),
    CheckpointFormat(
        "ABMIL of the MHIM-MIL v2 code",
        has=("feature.0.weight", "attention.0.weight", "classifier.weight"),
        read=_mhim("attention.0", "attention.2", "classifier"),
        options={"projection_activation": _MHIM_V2},
    ),
    CheckpointFormat(
        "Gated ABMIL of the MHIM-MIL v1 code",
        has=("feature.0.bias", *_MHIM_GATED),
        lacks=("attention_a.0.bias",),
        read=_mhim("attention_a.0", "attention_c", "classifier.0", "attention_b.0"),
        options={"activation": _MHIM_V1_ACTIVATION},
    ),
    CheckpointFormat(
        "Gated ABMIL of the MHIM-MIL v2 code",
        has=("feature.0.bias", "attention_a.0.bias", *_MHIM_GATED),
        read=_mhim("attention_a.0", "attention_c", "classifier.0", "attention_b.0"),
        options={"projection_activation": _MHIM_V2},
    ),
    CheckpointFormat(
        "Gated ABMIL of the MHIM-MIL v2 code without biases",
        has=_MHIM_GATED,
        lacks=("feature.0.bias",),
        read=_mhim("attention_a.0", "attention_c", "classifier.0", "attention_b.0"),
        options={"projection_activation": _MHIM_V2},
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
            "attention.0", "attention.2", "classifier", projection="linear_layers.{}.0", step=1
        ).read,
    ),
    CheckpointFormat(
        "ABMIL of torchmil",
        has=("pool.fc1.module.weight", "pool.fc2.weight", "classifier.module.weight"),
        lacks=("inst_classifiers.*",),
        read=_torchmil,
        options={"activation": _ACTIVATION},
    ),
    CheckpointFormat(
        "CLAM-SB of torchmil",
        has=("pool.fc1.module.weight", "pool.fc2.weight", "inst_classifiers.0.module.weight"),
        read=_torchmil,
        options={"activation": _ACTIVATION},
    ),
    CheckpointFormat(
        "ABMIL of the AttriMIL code",
        has=("adaptor.0.weight", "attention_net.attention_c.weight"),
        read=_residual_adaptor,
    ),
)
