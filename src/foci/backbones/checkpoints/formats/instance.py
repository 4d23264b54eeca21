"""Checkpoints of classifiers that score every tile: mean and max pooling, MIL_fc, DSMIL.

DSMIL of its authors, current and earlier, and of the MHIM-MIL code; MIL_fc and MIL_fc_mc of CLAM.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from foci.backbones.checkpoints.formats.base import (
    ONE_OUTPUT,
    CheckpointFormat,
    KeyMapping,
    Option,
    Options,
    Reader,
    two_logits,
    widths,
)
from foci.backbones.checkpoints.state_dict import WRAP, StateDict

_RELU = Option("relu", "projection_activation='relu', the default", ("relu", "gelu"))
_GELU = Option(
    "gelu",
    "projection_activation='gelu', from the configuration shipped with version 2",
    ("gelu", "relu"),
)


def _read_two_layers(
    state: StateDict, architecture: str, projection: str, head: str, **settings: Any
) -> KeyMapping:
    config = {
        **widths(state, projection),
        "n_classes": state.rows(head),
        "projection_bias": f"{projection}.bias" in state,
        **settings,
    }
    return KeyMapping(architecture, config, {"projection.0": projection, "head": head}, state)


def _second_layer(state: StateDict, net: str) -> str:
    """The second layer of a two-layer net, after a dropout or not."""
    return f"{net}.3" if f"{net}.3.weight" in state else f"{net}.2"


def _mean_or_max(state: StateDict, options: Options) -> KeyMapping:
    if options["pooling"] is None:
        raise state.refused(
            "is MeanMIL or MaxMIL, whose files look alike", "give pooling='mean' or pooling='max'"
        )
    head = _second_layer(state, "head")
    state, _, notes = two_logits(state, head)
    activation = options["projection_activation"]
    name = f"{options['pooling']}-mil"
    mapping = _read_two_layers(state, name, "head.0", head, projection_activation=activation)
    return replace(mapping, notes=notes)


def _mil_fc(state: StateDict, options: Options) -> KeyMapping:
    head = "classifier" if "classifier.weight" in state else "classifiers"
    return _read_two_layers(state, "mil-fc", "fc.0", head)


def _earlier_mil_fc(state: StateDict, options: Options) -> KeyMapping:
    return _read_two_layers(state, "mil-fc", "classifier.0", _second_layer(state, "classifier"))


def _earlier_mil_fc_mc(state: StateDict, options: Options) -> KeyMapping:
    """One linear layer per class, put together."""
    n_classes, joined = state.count("classifiers.{}"), {}
    for part in ("weight", "bias"):
        rows = [state[f"classifiers.{c}.{part}"] for c in range(n_classes)]
        joined[f"classifiers.{part}"] = torch.cat(rows)
    others = {key: one for key, one in state.items() if not key.startswith("classifiers.")}
    joined_state = StateDict(state.path, {**others, **joined}, state.notes)
    return _read_two_layers(joined_state, "mil-fc", "fc.0", "classifiers")


INSTANCE_FORMATS = (
    CheckpointFormat("MIL_fc of CLAM", has=("fc.0.weight", "classifier.weight"), read=_mil_fc),
    CheckpointFormat("MIL_fc_mc of CLAM", has=("fc.0.weight", "classifiers.weight"), read=_mil_fc),
    CheckpointFormat(
        "MIL_fc of CLAM before April 2024",
        has=("classifier.0.weight", "classifier.[23].weight"),
        read=_earlier_mil_fc,
    ),
    CheckpointFormat(
        "MIL_fc_mc of CLAM before April 2024",
        has=("fc.0.weight", "classifiers.0.weight"),
        read=_earlier_mil_fc_mc,
    ),
    CheckpointFormat(
        "MeanMIL/MaxMIL",
        has=("head.0.weight", "head.[23].weight"),
        read=_mean_or_max,
        options={
            "pooling": Option(None, choices=("mean", "max")),
            "projection_activation": _RELU,
        },
    ),
)

# DSMIL

DSMIL_OPTIONS = {
    "negative": Option(False, choices=(False, True)),
    "value": Option(None, choices=("linear", "relu")),
}
"""What the tensors of any DSMIL leave open."""

_SEVERAL = (
    "{} outputs are read as one softmax: of independent sigmoids, the probability of each class "
    "given that exactly one is present"
)
_WITH_NEGATIVE = (
    "{} outputs and a last class without one are read as one softmax: of independent sigmoids, the "
    "probability of each class given that at most one is present"
)


def dsmil(
    tiles: str, bag: str, projection: str | None = None, ignored: tuple[str, ...] = ()
) -> Reader:
    """Reader of a DSMIL with these layer names.

    Args:
        tiles: The tile classifier.
        bag: The bag classifier, with ``q``, perhaps ``v``, and ``fcc`` inside.
        projection: In front of both; None for none.
        ignored: Patterns of names that play no part in a prediction.
    """

    def read(state: StateDict, options: Options) -> KeyMapping:
        head, deep = f"{bag}.fcc", f"{bag}.q.0.weight" in state
        names = {"tile_classifier": tiles, "head": head}
        names |= {"query.0": f"{bag}.q.0", "query.2": f"{bag}.q.2"} if deep else {}
        names |= {} if deep else {"query": f"{bag}.q"}
        value, notes = _pooled_value(state, f"{bag}.v.1", deep, options["value"])
        if value != "token":
            names["value.0"] = f"{bag}.v.1"
        outputs = state.rows(head)
        negative = options["negative"] or outputs == 1
        config: dict[str, Any] = {**options, "d_in": state.columns(tiles)}
        if projection is not None:
            names["projection.0"] = projection
            config |= widths(state, projection)
            config["projection_bias"] = f"{projection}.bias" in state
        config |= {
            "n_classes": outputs + negative,
            "negative": negative,
            "query": state.rows(names["query.2" if deep else "query"]),
            "query_hidden": state.rows(names["query.0"]) if deep else None,
            "value": value,
        }
        classes = (_WITH_NEGATIVE if negative else _SEVERAL).format(outputs)
        note = ONE_OUTPUT if outputs == 1 else classes
        weight = state[f"{head}.weight"]
        if weight.dim() != 3:
            what = f"{head}.weight has shape {list(weight.shape)}, not outputs x outputs x width"
            raise state.refused(what, "give weights of an unmodified model")
        # the convolution over all pooled tokens, [K, K, d], is a linear layer [K, K d]
        flat = state.replaced({f"{head}.weight": weight.flatten(start_dim=1)})
        return KeyMapping("dsmil", config, names, flat, ignored, (note, *notes))

    return read


def _pooled_value(
    state: StateDict, layer: str, deep: bool, given: str | None
) -> tuple[str, tuple[str, ...]]:
    """What is pooled, and a note where the file does not tell."""
    if f"{layer}.weight" not in state:
        return "token", ()
    if given is not None or deep:
        return given or "relu", ()
    earlier = "as in the authors' code before September 2022; or 'relu' (passing_v)"
    return "linear", (f"value='linear', {earlier}",)


def _official(state: StateDict, options: Options) -> KeyMapping:
    plain = "i_classifier.fc.weight" in state  # with the feature extractor inside
    tiles = "i_classifier.fc" if plain else "i_classifier.fc.0"
    mapping = dsmil(tiles, "b_classifier")(state, options)
    extractor = "i_classifier.feature_extractor."
    if not any(key.startswith(extractor) for key in state):
        return mapping
    note = "its feature extractor is left out: give the features that it computes"
    return replace(mapping, ignored=(f"{extractor}*",), notes=(*mapping.notes, note))


def _with_lin(state: StateDict, options: Options) -> KeyMapping:
    what = "is the DSMIL of early 2022, with a layer b_classifier.lin that FOCI's lacks"
    raise state.refused(what, WRAP)


DSMIL_FORMATS = (
    CheckpointFormat(
        "DSMIL",
        has=("i_classifier.fc.*", "b_classifier.fcc.weight"),
        lacks=("i_classifier.embed.0.weight", "b_classifier.lin.*"),
        read=_official,
        options=DSMIL_OPTIONS,
    ),
    CheckpointFormat(
        "DSMIL of 2022",
        has=("i_classifier.fc.*", "b_classifier.fcc.weight", "b_classifier.lin.*"),
        read=_with_lin,
    ),
    CheckpointFormat(
        "DSMIL of the MHIM-MIL code, v1",
        has=("i_classifier.embed.0.weight", "i_classifier.fc.0.weight", "b_classifier.fcc.weight"),
        read=dsmil("i_classifier.fc.0", "b_classifier", "i_classifier.embed.0"),
        options={**DSMIL_OPTIONS, "projection_activation": _RELU},
    ),
    CheckpointFormat(
        "DSMIL of the MHIM-MIL code, v2",
        has=("feature.0.weight", "i_classifier.weight", "b_classifier.fcc.weight"),
        read=dsmil("i_classifier", "b_classifier", "feature.0"),
        options={**DSMIL_OPTIONS, "projection_activation": _GELU},
    ),
)
