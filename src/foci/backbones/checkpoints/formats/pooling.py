"""CLAM checkpoints, single and multi branch, gated or not, of the authors and of MIL-Lab."""

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
from foci.backbones.checkpoints.state_dict import StateDict

_CLAM_IGNORED = ("instance_loss_fn.labels",)
_CLAM_ACTIVATION = {
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


def _read_clam(
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
    return KeyMapping(architecture, config, names, state, _CLAM_IGNORED)


def _net(state: StateDict) -> str:
    """Without dropout, code before April 2024 put the attention at index 2."""
    dropout = any(key.startswith("attention_net.3.") for key in state)
    return "attention_net.3" if dropout else "attention_net.2"


def _single(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    names = {"projection.0": "attention_net.0", "head": "classifiers"}
    return _read_clam(
        state, "clam-sb", state.rows("classifiers.weight"), names, _net(state), options
    )


def _multi(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    n_classes = state.count("classifiers.{}.weight")
    names = {"projection.0": "attention_net.0"}
    names |= {f"heads.{c}": f"classifiers.{c}" for c in range(n_classes)}
    return _read_clam(state, "clam-mb", n_classes, names, _net(state), options)


def _mil_lab_clam(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    projection = projection_names(state, MIL_LAB_PROJECTION)
    names = {**projection, "head": "classifier"}
    depth = {"projection_layers": len(projection)}
    n_classes = state.rows("classifier.weight")
    return _read_clam(state, "clam-sb", n_classes, names, "global_attn", {**options, **depth})


CLAM_FORMATS = (
    CheckpointFormat(
        "CLAM-SB",
        has=("attention_net.0.weight", "classifiers.weight"),
        read=_single,
        options=_CLAM_ACTIVATION,
    ),
    CheckpointFormat(
        "CLAM-MB",
        has=("attention_net.0.weight", "classifiers.0.weight"),
        read=_multi,
        options={**_CLAM_ACTIVATION, "plus_one": _PLUS_ONE},
    ),
    CheckpointFormat(
        "CLAM-SB of MIL-Lab",
        has=("patch_embed.0.weight", "global_attn.*", "instance_classifiers.0.weight"),
        read=_mil_lab_clam,
    ),
)


# ABMIL checkpoints of its authors and of other projects that implement it.


_WRAP = "wrap the model in foci.backbones.CallableBackbone"
_ABMIL_ACTIVATION = Option(
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


def _mil_lab_abmil(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
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

ABMIL_FORMATS = (
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
        read=_mil_lab_abmil,
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
        options={"activation": _ABMIL_ACTIVATION},
    ),
    CheckpointFormat(
        "CLAM-SB of torchmil",
        has=("pool.fc1.module.weight", "pool.fc2.weight", "inst_classifiers.0.module.weight"),
        read=_torchmil,
        options={"activation": _ABMIL_ACTIVATION},
    ),
    CheckpointFormat(
        "ABMIL of the AttriMIL code",
        has=("adaptor.0.weight", "attention_net.attention_c.weight"),
        read=_residual_adaptor,
    ),
)


# ACMIL checkpoints (gated or multi-head) and ASMIL's, which share their tensor names.


_ACMIL_IGNORED = ("dimreduction.bn.*",)
"""A normalisation that the released ASMIL code creates and never applies."""

_SCORE = Option("logits", choices=("logits", "softmax"), predicts=False)
_HEADS = Option(8, "heads=8, as published", tries=(4, 16, 2, 1))


def _read_acmil(
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
    return KeyMapping(architecture, config, names, state, _ACMIL_IGNORED)


def _gated(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    names = {
        "attention.V": "attention.attention_V.0",
        "attention.U": "attention.attention_U.0",
        "attention.w": "attention.attention_weights",
    }
    hidden = state.rows("attention.attention_V.0.weight")
    branches = state.rows("attention.attention_weights.weight")
    return _read_acmil(state, "acmil", branches, names, {"hidden": hidden, **options})


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
    return _read_acmil(state, "acmil-mha", branches, names, options)


def _asmil(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    branches = state.count("sub_attention.{}.q_proj.weight")
    names = _query_names(branches) | _attention_names("bag", "bag_attention")
    names["class_query"] = "cls"
    return _read_acmil(state, "asmil-query", branches, names, options)


ACMIL_FORMATS = (
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


# AttriMIL checkpoints, as published (no projection) or with an ``alignment`` layer in front.


def _read_attrimil(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
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


ATTRIMIL_FORMATS = (
    CheckpointFormat(
        "AttriMIL",
        has=("attention_nets.0.attention_c.weight", "classifiers.0.weight", "bias"),
        read=_read_attrimil,
    ),
)
