"""Checkpoints of classifiers that pool, by attention or by mean and max.

CLAM, ABMIL, ACMIL, ASMIL, AttriMIL and MIL_fc, each of the authors and of the projects that
implement it under other tensor names; slideflow's Attention_MIL and STAMP's MLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from foci.backbones.checkpoints.formats.base import (
    MHIM_V1,
    MHIM_V2,
    MIL_LAB_PROJECTION,
    RELU_BY_DEFAULT,
    WRAP,
    CheckpointFormat,
    KeyMapping,
    Option,
    Options,
    Reader,
    StateDict,
    gated_names,
    projection_activation,
    projection_names,
    require_option,
    second_layer,
    two_logits,
    widths,
)

# CLAM, single and multi branch, gated or not, of the authors and of MIL-Lab


def _attention_net_names(state: StateDict, net: str) -> dict[str, str]:
    """Key names of an attention net: gated, or plain with or without dropout."""
    if f"{net}.module.0.weight" not in state:
        return gated_names("attention", net)
    last = second_layer(state, f"{net}.module")
    return {"attention.V": f"{net}.module.0", "attention.w": last}


def _read_clam(
    state: StateDict,
    architecture: str,
    n_classes: int,
    names: dict[str, str],
    options: Options,
    net: str | None = None,
) -> KeyMapping:
    if net is None:  # without dropout, code before April 2024 put the attention at index 2
        dropout = any(key.startswith("attention_net.3.") for key in state)
        net = "attention_net.3" if dropout else "attention_net.2"
    names = {**names, **_attention_net_names(state, net)}
    names |= {f"instance_classifiers.{c}": f"instance_classifiers.{c}" for c in range(n_classes)}
    config = {
        **widths(state, names["projection.0"]),
        "n_classes": n_classes,
        "hidden": state.rows(names["attention.V"]),
        "gated": "attention.U" in names,
        **options,
    }
    return KeyMapping(architecture, config, names, state, ignored=("instance_loss_fn.labels",))


def _clam_sb(state: StateDict, options: Options) -> KeyMapping:
    names = {"projection.0": "attention_net.0", "head": "classifiers"}
    return _read_clam(state, "clam-sb", state.rows("classifiers"), names, options)


def _clam_mb(state: StateDict, options: Options) -> KeyMapping:
    n_classes = state.count("classifiers.{}")
    names = {f"heads.{c}": f"classifiers.{c}" for c in range(n_classes)}
    names["projection.0"] = "attention_net.0"
    return _read_clam(state, "clam-mb", n_classes, names, options)


def _clam_mil_lab(state: StateDict, options: Options) -> KeyMapping:
    names = projection_names(state, MIL_LAB_PROJECTION)
    options = {**options, "projection_layers": len(names)}
    names["head"] = "classifier"
    n_classes = state.rows("classifier")
    return _read_clam(state, "clam-sb", n_classes, names, options, net="global_attn")


_CLAM_ACTIVATION = projection_activation(
    "relu", "as the authors train it (MHIM-MIL's CLAM may have GELU)"
)
_PLUS_ONE = Option(
    False,
    "plus_one=False: a softmax over the tiles, as the authors pool; give plus_one=True for weights "
    "of the ACMIL code, which adds 1 to its denominator",
    (False, True),
)

CLAM_FORMATS = (
    CheckpointFormat(
        "CLAM-SB",
        has=("attention_net.0.weight", "classifiers.weight"),
        read=_clam_sb,
        options={"projection_activation": _CLAM_ACTIVATION},
    ),
    CheckpointFormat(
        "CLAM-MB",
        has=("attention_net.0.weight", "classifiers.0.weight"),
        read=_clam_mb,
        options={"projection_activation": _CLAM_ACTIVATION, "plus_one": _PLUS_ONE},
    ),
    CheckpointFormat(
        "CLAM-SB of MIL-Lab",
        has=("patch_embed.0.weight", "global_attn.*", "instance_classifiers.0.weight"),
        read=_clam_mil_lab,
    ),
)

# ABMIL of its authors and of other projects that implement it


def _abmil(
    first: str,
    last: str,
    head: str,
    gate: str | None = None,
    projection: str = "",
    step: int = 3,
    ignored: tuple[str, ...] = (),
) -> Reader:
    """Reader of an ABMIL with these layer names: first and last of the attention, head, gate.

    Gate and projection may be absent in a file; for the projection, see :func:`projection_names`.
    """

    def read(state: StateDict, options: Options) -> KeyMapping:
        names = {"attention.V": first, "attention.w": last, "head": head}
        if gate is not None and f"{gate}.weight" in state:
            names["attention.U"] = gate
        state, n_classes, notes = two_logits(state, head)
        layers = projection_names(state, projection, step)
        own = layers.get("projection.0")
        config = {
            "d_in": state.columns(own or first),
            "d": None if own is None else state.rows(own),
            "n_classes": n_classes,
            "hidden": state.rows(first),
            "gated": "attention.U" in names,
            "projection_bias": own is None or f"{own}.bias" in state,
            "projection_layers": len(layers) or 1,
            **options,
        }
        return KeyMapping("abmil", config, names | layers, state, ignored, notes)

    return read


def _ilse(state: StateDict, options: Options) -> KeyMapping:
    if any(key.startswith("feature_extractor_part1.") for key in state):
        raise state.refused(
            "is the ABMIL for images, with convolutions in front",
            "FOCI reads features: train the attention part on them",
        )
    plain = "attention_V.0.weight" not in state
    first, last = ("attention.0", "attention.2") if plain else ("attention_V.0", "attention_w")
    if "attention_weights.weight" in state:  # its name before June 2023
        last = "attention_weights"
    gate = None if plain else "attention_U.0"
    read = _abmil(first, last, "classifier.0", gate, "feature_extractor_part2.0")
    return read(state, options)


def _abmil_mil_lab(state: StateDict, options: Options) -> KeyMapping:
    net = _attention_net_names(state, "global_attn")
    first, last, gate = net["attention.V"], net["attention.w"], net.get("attention.U")
    return _abmil(first, last, "classifier", gate, MIL_LAB_PROJECTION)(state, options)


def _abmil_torchmil(state: StateDict, options: Options) -> KeyMapping:
    if any(key.startswith("feat_ext.") for key in state):
        raise state.refused("has a feature extractor of its own (feat_ext)", WRAP)
    read = _abmil(
        "pool.fc1.module",
        "pool.fc2",
        "classifier.module",
        "pool.fc_gated.module",
        ignored=("inst_classifiers.*", "inst_loss_fn.*"),
    )
    return read(state, options)


def _abmil_adaptor(state: StateDict, options: Options) -> KeyMapping:
    """With the residual adaptor of the AttriMIL code in front."""
    names = gated_names("attention", "attention_net")
    names |= {"adaptor.0": "adaptor.0", "adaptor.2": "adaptor.2", "head": "classifier"}
    state, n_classes, notes = two_logits(state, "classifier")
    config = {
        "d_in": state.columns("adaptor.0"),
        "n_classes": n_classes,
        "d": None,
        "hidden": state.rows(names["attention.V"]),
        "adaptor_hidden": state.rows("adaptor.0"),
    }
    return KeyMapping("abmil", config, names, state, notes=notes)


def _abmil_xmil(head: str) -> Reader:
    """ABMIL of xMIL, whose head may have hidden layers; the journal branch renamed it."""

    def read(state: StateDict, options: Options) -> KeyMapping:
        reader = _abmil("attention.0", "attention.2", head, projection="linear_layers.{}.0", step=1)
        mapping = reader(state, options)
        hidden = state.count("out_layers.{}.0")
        if hidden == 0:
            return mapping
        names = {key: name for key, name in mapping.names.items() if key != "head"}
        names |= {f"head.{2 * i}": f"out_layers.{i}.0" for i in range(hidden)}
        names[f"head.{2 * hidden}"] = head
        own = {"head_hidden": state.rows("out_layers.0.0"), "head_layers": hidden}
        return replace(mapping, config={**mapping.config, **own}, names=names)

    return read


def _abmil_mhim_v2(state: StateDict, options: Options) -> KeyMapping:
    """Plain attention, which may have been trained on features with their positions added."""
    what = "is ABMIL of MHIM-MIL v2, with --pos sincos or without"
    require_option(state, options, "pos", "none", what)
    own = {name: value for name, value in options.items() if name != "pos"}
    return _abmil("attention.0", "attention.2", "classifier", None, "feature.0")(state, own)


def _attention_mil(state: StateDict, options: Options) -> KeyMapping:
    r"""Attention_MIL of slideflow (and marugoto), with a batch normalisation before its head.

    In eval mode that is affine and becomes part of the head; a temperature T divides the attention
    logits, and so do the last layer's weights.

    .. math:: W\,\big(\gamma \frac{z - \mu}{\sqrt{v + \epsilon}} + \beta\big) + b
    """
    norm = {
        part: state[f"head.1.{part}"].double()
        for part in ("weight", "bias", "running_mean", "running_var")
    }
    scale = norm["weight"] / (norm["running_var"] + 1e-5).sqrt()
    weight, bias = state["head.3.weight"], state["head.3.bias"]
    shift = weight.double() @ (norm["bias"] - norm["running_mean"] * scale)
    folded = {
        "head.3.weight": (weight.double() * scale).to(weight.dtype),
        "head.3.bias": (bias.double() + shift).to(bias.dtype),
    }
    folded |= {
        key: state[key] / options["temperature"]
        for key in ("attention.2.weight", "attention.2.bias")
        if key in state
    }
    read = _abmil("attention.0", "attention.2", "head.3", None, "encoder.0", ignored=("head.1.*",))
    return read(state.replaced(folded), {})


_TORCHMIL_ACTIVATION = Option(
    "tanh", "activation='tanh' in the attention, the default", ("tanh", "relu", "gelu")
)
_MHIM_V1_ACTIVATION = Option(
    "relu",
    "activation='relu' in the attention, the default of MHIM-MIL v1",
    ("relu", "gelu", "tanh"),
)
_MHIM_GATED = ("feature.0.weight", "attention_a.0.weight", "classifier.0.weight")
_read_mhim_gated = _abmil(
    "attention_a.0", "attention_c", "classifier.0", "attention_b.0", "feature.0"
)

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
        read=_abmil(
            "attention.attention_V.0",
            "attention.attention_weights",
            "classifier.fc",
            "attention.attention_U.0",
            "dimreduction.fc1",
            ignored=("dimreduction.bn.*",),
        ),
    ),
    CheckpointFormat(
        "ABMIL of the MHIM-MIL code",
        has=("feature.0.weight", "attention.0.weight", "classifier.0.weight"),
        read=_abmil("attention.0", "attention.2", "classifier.0", None, "feature.0"),
        options={"projection_activation": MHIM_V1},
    ),
    CheckpointFormat(
        "ABMIL of the MHIM-MIL v2 code",
        has=("feature.0.weight", "attention.0.weight", "classifier.weight"),
        read=_abmil_mhim_v2,
        options={
            "pos": Option(None, choices=("none", "sincos")),
            "projection_activation": MHIM_V2,
        },
    ),
    CheckpointFormat(
        "Gated ABMIL of the MHIM-MIL v1 code",
        has=("feature.0.bias", *_MHIM_GATED),
        lacks=("attention_a.0.bias",),
        read=_read_mhim_gated,
        options={"activation": _MHIM_V1_ACTIVATION},
    ),
    CheckpointFormat(
        "Gated ABMIL of the MHIM-MIL v2 code",
        has=("feature.0.bias", "attention_a.0.bias", *_MHIM_GATED),
        read=_read_mhim_gated,
        options={"projection_activation": MHIM_V2},
    ),
    CheckpointFormat(
        "Gated ABMIL of the MHIM-MIL v2 code without biases",
        has=_MHIM_GATED,
        lacks=("feature.0.bias",),
        read=_read_mhim_gated,
        options={"projection_activation": MHIM_V2},
    ),
    CheckpointFormat(
        "ABMIL of MIL-Lab",
        has=("patch_embed.0.weight", "global_attn.*"),
        lacks=("instance_classifiers.0.weight",),
        read=_abmil_mil_lab,
    ),
    CheckpointFormat(
        "ABMIL of xMIL",
        has=("linear_layers.0.0.weight", "attention.0.weight", "classifier.weight"),
        read=_abmil_xmil("classifier"),
    ),
    CheckpointFormat(
        "ABMIL of xMIL, journal branch",
        has=("linear_layers.0.0.weight", "attention.0.weight", "linear_head.weight"),
        read=_abmil_xmil("linear_head"),
    ),
    CheckpointFormat(
        "Attention_MIL of slideflow",
        has=("encoder.0.weight", "attention.2.weight", "head.1.running_mean", "head.3.weight"),
        read=_attention_mil,
        options={
            "temperature": Option(1.0, "temperature=1 of the attention, slideflow's default"),
            "attention_gate": Option(
                0, "attention_gate=0, slideflow's default; another one is not supported", (0,)
            ),
        },
    ),
    CheckpointFormat(
        "ABMIL of torchmil",
        has=("pool.fc1.module.weight", "pool.fc2.weight", "classifier.module.weight"),
        lacks=("inst_classifiers.*",),
        read=_abmil_torchmil,
        options={"activation": _TORCHMIL_ACTIVATION},
    ),
    CheckpointFormat(
        "CLAM-SB of torchmil",
        has=("pool.fc1.module.weight", "pool.fc2.weight", "inst_classifiers.0.module.weight"),
        read=_abmil_torchmil,
        options={"activation": _TORCHMIL_ACTIVATION},
    ),
    CheckpointFormat(
        "ABMIL of the AttriMIL code",
        has=("adaptor.0.weight", "attention_net.attention_c.weight"),
        read=_abmil_adaptor,
    ),
)

# ACMIL (gated or multi-head) and ASMIL, which share their tensor names


def _read_acmil(
    state: StateDict,
    architecture: str,
    branches: int,
    names: dict[str, str],
    settings: Mapping[str, Any],
) -> KeyMapping:
    names = {**names, "projection.0": "dimreduction.fc1", "head": "Slide_classifier.fc"}
    names |= {f"branch_heads.{r}": f"classifier.{r}.fc" for r in range(branches)}
    config = {
        **widths(state, "dimreduction.fc1"),
        "n_classes": state.rows("Slide_classifier.fc"),
        "branches": branches,
        **settings,
    }
    # the released ASMIL code creates a normalisation that it never applies
    return KeyMapping(architecture, config, names, state, ignored=("dimreduction.bn.*",))


def _acmil_gated(state: StateDict, options: Options) -> KeyMapping:
    names = {
        "attention.V": "attention.attention_V.0",
        "attention.U": "attention.attention_U.0",
        "attention.w": "attention.attention_weights",
    }
    hidden, branches = state.rows(names["attention.V"]), state.rows(names["attention.w"])
    return _read_acmil(state, "acmil", branches, names, {"hidden": hidden, **options})


def _multi_head(state: StateDict, options: Options) -> KeyMapping:
    """ACMIL with multi-head attention, or ASMIL, which pools the bag by a query of its own."""
    asmil = "cls" in state
    if asmil and (anchor := next((key for key in state.entries if key in _ANCHORS), None)):
        what = f"is ASMIL with an anchor ({anchor!r}), whose attention is no softmax"
        raise state.refused(what, "save the state_dict() of the online model alone")
    branches = state.count("sub_attention.{}.q_proj")
    nets = {f"branches.attention.{r}": f"sub_attention.{r}" for r in range(branches)}
    names = {"branches.queries": "q"}
    if asmil:
        names["class_query"] = "cls"
    for ours, theirs in {**nets, "bag": "bag_attention"}.items():
        for part in "qkv" if asmil or ours != "bag" else "v":
            names[f"{ours}.{part}"] = f"{theirs}.{part}_proj"
        names |= {f"{ours}.out": f"{theirs}.out_proj", f"{ours}.norm": f"{theirs}.layer_norm"}
    architecture = "asmil-query" if asmil else "acmil-mha"
    return _read_acmil(state, architecture, branches, names, options)


_ANCHORS = ("ema", "ema_model", "EMA_model", "anchor", "anchor_model")
"""Entries of a training file under which the average of the online model may stand."""

_SCORE = Option("logits", choices=("logits", "softmax"), predicts=False)
_HEADS = Option(8, "heads=8, as published", tries=(4, 16, 2, 1))

ACMIL_FORMATS = (
    CheckpointFormat(
        "ACMIL",
        has=("Slide_classifier.fc.weight", "attention.attention_weights.weight"),
        read=_acmil_gated,
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
        read=_multi_head,
        options={"heads": _HEADS, "score": _SCORE},
    ),
)

# AttriMIL, as published (no projection) or with an ``alignment`` layer in front


def _attrimil(state: StateDict, options: Options) -> KeyMapping:
    n_classes = state.count("attention_nets.{}.attention_c")
    names = {"adaptor.0": "adaptor.0", "adaptor.2": "adaptor.2", "beta": "bias"}
    for c in range(n_classes):
        names |= gated_names(f"attention.{c}", f"attention_nets.{c}")
        names[f"scorers.{c}"] = f"classifiers.{c}"
    projected = "alignment.0.weight" in state
    if projected:
        names["projection.0"] = "alignment.0"
    config = {
        "d_in": state.columns("alignment.0" if projected else "adaptor.0"),
        "n_classes": n_classes,
        "d": state.rows("alignment.0") if projected else None,
        "hidden": state.rows("attention_nets.0.attention_a.0"),
        "adaptor_hidden": state.rows("adaptor.0"),
        "projection_bias": not projected or "alignment.0.bias" in state,
    }
    return KeyMapping("attrimil", config, names, state)


ATTRIMIL_FORMATS = (
    CheckpointFormat(
        "AttriMIL",
        has=("attention_nets.0.attention_c.weight", "classifiers.0.weight", "bias"),
        read=_attrimil,
    ),
)

# Mean and max pooling, MIL_fc and MIL_fc_mc of CLAM: two layers, and a score for every tile


def _read_two_layers(
    state: StateDict,
    architecture: str,
    projection: str,
    head: str,
    notes: tuple[str, ...] = (),
    **settings: Any,
) -> KeyMapping:
    config = {
        **widths(state, projection),
        "n_classes": state.rows(head),
        "projection_bias": f"{projection}.bias" in state,
        **settings,
    }
    names = {"projection.0": projection, "head": head}
    return KeyMapping(architecture, config, names, state, notes=notes)


def _mean_or_max(state: StateDict, options: Options) -> KeyMapping:
    if options["pooling"] is None:
        raise state.refused(
            "is MeanMIL or MaxMIL, whose files look alike", "give pooling='mean' or pooling='max'"
        )
    head = second_layer(state, "head")
    state, _, notes = two_logits(state, head)
    name, activation = f"{options['pooling']}-mil", options["projection_activation"]
    return _read_two_layers(state, name, "head.0", head, notes, projection_activation=activation)


def _mil_fc(state: StateDict, options: Options) -> KeyMapping:
    if "fc.0.weight" in state:
        head = "classifier" if "classifier.weight" in state else "classifiers"
        return _read_two_layers(state, "mil-fc", "fc.0", head)
    return _read_two_layers(state, "mil-fc", "classifier.0", second_layer(state, "classifier"))


def _stamp_mlp(state: StateDict, options: Options) -> KeyMapping:
    """The mean of the tiles through a net of any depth."""
    layers = list(projection_names(state, "mlp.{}").values())
    names = {f"head.{2 * i}": layer for i, layer in enumerate(layers)}
    hidden = len(layers) - 1
    config = {
        "d_in": state.columns("mlp.0"),
        "n_classes": state.rows(layers[-1]),
        "d": None,
        "head_hidden": state.rows("mlp.0") if hidden else None,
        "head_layers": hidden or 1,
    }
    return KeyMapping("mean-mil", config, names if hidden else {"head": "mlp.0"}, state)


def _earlier_mil_fc_mc(state: StateDict, options: Options) -> KeyMapping:
    """One linear layer per class, put together."""
    n_classes, joined = state.count("classifiers.{}"), {}
    for part in ("weight", "bias"):
        rows = [state[f"classifiers.{c}.{part}"] for c in range(n_classes)]
        joined[f"classifiers.{part}"] = torch.cat(rows)
    apart = [key for key in state if key.startswith("classifiers.")]
    return _read_two_layers(state.replaced(joined, apart), "mil-fc", "fc.0", "classifiers")


TWO_LAYER_FORMATS = (
    CheckpointFormat("MIL_fc of CLAM", has=("fc.0.weight", "classifier.weight"), read=_mil_fc),
    CheckpointFormat("MIL_fc_mc of CLAM", has=("fc.0.weight", "classifiers.weight"), read=_mil_fc),
    CheckpointFormat(
        "MIL_fc of CLAM before April 2024",
        has=("classifier.0.weight", "classifier.[23].weight"),
        read=_mil_fc,
    ),
    CheckpointFormat(
        "MIL_fc_mc of CLAM before April 2024",
        has=("fc.0.weight", "classifiers.0.weight"),
        read=_earlier_mil_fc_mc,
    ),
    CheckpointFormat("MLP of STAMP", has=("mlp.0.weight",), lacks=("[!m]*",), read=_stamp_mlp),
    CheckpointFormat(
        "MeanMIL/MaxMIL",
        has=("head.0.weight", "head.[23].weight"),
        read=_mean_or_max,
        options={
            "pooling": Option(None, choices=("mean", "max")),
            "projection_activation": RELU_BY_DEFAULT,
        },
    ),
)
