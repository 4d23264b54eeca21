"""Checkpoints of mean and max pooling, and of CLAM's MIL_fc and MIL_fc_mc."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def _read_instance(
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
    mapping = _read_instance(state, name, "head.0", head, projection_activation=activation)
    return replace(mapping, notes=notes)


def _mil_fc(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    return _read_instance(state, "mil-fc", "fc.0", "classifier")


def _mil_fc_mc(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    return _read_instance(state, "mil-fc", "fc.0", "classifiers")


def _earlier(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    return _read_instance(state, "mil-fc", "classifier.0", _last(state, "classifier"))


def _earlier_mc(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    """One linear layer per class, put together."""
    n_classes, joined = state.count("classifiers.{}.weight"), {}
    for part in ("weight", "bias"):
        rows = [f"classifiers.{c}.{part}" for c in range(n_classes)]
        joined[f"classifiers.{part}"] = torch.cat([state[row] for row in rows])
    others = {key: state[key] for key in state if not key.startswith("classifiers.")}
    return _mil_fc_mc(StateDict(state.path, {**others, **joined}, state.notes), options)


INSTANCE_FORMATS = (
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


# DSMIL checkpoints of its authors, current and earlier, and of the MHIM-MIL code.


_Read = Callable[[StateDict, Mapping[str, Any]], KeyMapping]

OPTIONS: Mapping[str, Option] = {
    "negative": Option(False, choices=(False, True)),
    "value": Option(None, choices=("linear", "relu")),
}
"""What the tensors of any DSMIL leave open."""

_ONE = "one sigmoid output u became the two logits [0, u]"
_SEVERAL = (
    "{} outputs are read as one softmax: of independent sigmoids, the probability of each class "
    "given that exactly one is present"
)
_NONE = (
    "{} outputs and a last class without one are read as one softmax: of independent sigmoids, the "
    "probability of each class given that at most one is present"
)
_EXTRACTOR = "i_classifier.feature_extractor."
_NO_EXTRACTOR = "its feature extractor is left out: give the features that it computes"
_EARLIER = "value='linear', as in the authors' code before September 2022; or 'relu' (passing_v)"


def dsmil(
    tiles: str, bag: str, projection: str | None = None, ignored: tuple[str, ...] = ()
) -> _Read:
    """Reader of a DSMIL with these layer names.

    Args:
        tiles: The tile classifier.
        bag: The bag classifier, with ``q``, perhaps ``v``, and ``fcc`` inside.
        projection: In front of both; None for none.
        ignored: Patterns of names that play no part in a prediction.
    """

    def read(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
        options = dict(options)
        names = {"tile_classifier": tiles, "head": f"{bag}.fcc"}
        deep = f"{bag}.q.0.weight" in state
        names |= {"query.0": f"{bag}.q.0", "query.2": f"{bag}.q.2"} if deep else {}
        names |= {} if deep else {"query": f"{bag}.q"}
        value, notes = _value(state, f"{bag}.v.1", deep, options.pop("value"))
        names |= {} if value == "token" else {"value.0": f"{bag}.v.1"}
        outputs = state.rows(f"{names['head']}.weight")
        negative = options.pop("negative") or outputs == 1
        widths: dict[str, Any] = {"d_in": state.columns(f"{tiles}.weight"), **options}
        if projection is not None:
            names["projection.0"] = projection
            first = f"{projection}.weight"
            widths |= {"d_in": state.columns(first), "d": state.rows(first)}
            widths["projection_bias"] = f"{projection}.bias" in state
        config = {
            **widths,
            "n_classes": outputs + negative,
            "negative": negative,
            "query": state.rows(f"{names['query.2' if deep else 'query']}.weight"),
            "query_hidden": state.rows(f"{names['query.0']}.weight") if deep else None,
            "value": value,
        }
        said = _ONE if outputs == 1 else (_NONE if negative else _SEVERAL).format(outputs)
        flat = _one_row_per_output(state, f"{names['head']}.weight")
        return KeyMapping("dsmil", config, names, flat, ignored, (said, *notes))

    return read


def _value(
    state: StateDict, layer: str, deep: bool, given: str | None
) -> tuple[str, tuple[str, ...]]:
    """What is pooled, and a note where the file does not tell."""
    if f"{layer}.weight" not in state:
        return "token", ()
    if given is not None:
        return given, ()
    return ("relu", ()) if deep else ("linear", (_EARLIER,))


def _one_row_per_output(state: StateDict, key: str) -> StateDict:
    """The convolution over all pooled tokens, ``[K, K, d]``, as a linear layer ``[K, K d]``."""
    weight = state[key]
    if weight.dim() != 3:
        what = f"{key} has shape {list(weight.shape)}, not outputs x outputs x width"
        raise state.refused(what, "give weights of an unmodified model")
    return state.replaced({key: weight.flatten(start_dim=1)})


def _with_lin(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    raise state.refused(
        "is the DSMIL of early 2022, with a layer b_classifier.lin that FOCI's lacks",
        "wrap the model in foci.backbones.CallableBackbone",
    )


def _official(state: StateDict, options: Mapping[str, Any]) -> KeyMapping:
    plain = "i_classifier.fc.weight" in state  # with the feature extractor inside
    tiles = "i_classifier.fc" if plain else "i_classifier.fc.0"
    mapping = dsmil(tiles, "b_classifier")(state, options)
    if not any(key.startswith(_EXTRACTOR) for key in state):
        return mapping
    return replace(mapping, ignored=(f"{_EXTRACTOR}*",), notes=(*mapping.notes, _NO_EXTRACTOR))


_RELU = Option("relu", "projection_activation='relu', the default", ("relu", "gelu"))
_GELU = Option(
    "gelu",
    "projection_activation='gelu', from the configuration shipped with version 2",
    ("gelu", "relu"),
)

DSMIL_FORMATS = (
    CheckpointFormat(
        "DSMIL",
        has=("i_classifier.fc.*", "b_classifier.fcc.weight"),
        lacks=("i_classifier.embed.0.weight", "b_classifier.lin.*"),
        read=_official,
        options=OPTIONS,
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
        options={**OPTIONS, "projection_activation": _RELU},
    ),
    CheckpointFormat(
        "DSMIL of the MHIM-MIL code, v2",
        has=("feature.0.weight", "i_classifier.weight", "b_classifier.fcc.weight"),
        read=dsmil("i_classifier", "b_classifier", "feature.0"),
        options={**OPTIONS, "projection_activation": _GELU},
    ),
)
