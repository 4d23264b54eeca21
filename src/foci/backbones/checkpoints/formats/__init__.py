"""Checkpoint formats of other projects, recognised by the names of their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foci.backbones.checkpoints.formats import pooling, transformers
from foci.backbones.checkpoints.formats.base import (
    WRAP,
    CheckpointFormat,
    Options,
    StateDict,
    listed,
    refusing,
)

SEPARATE_PARTS = {"classifier", "dim_reduction", "attention", "att_classifier"}
"""Entries of a file of DTFD-MIL's authors: one state dict for each part of the model."""


def unsupported(name: str) -> tuple[str, str]:
    """What is wrong with a file of this architecture, and the way around it."""
    return (
        f"is {name}, which FOCI does not have",
        "wrap the model: foci.backbones.CallableBackbone(function, d_in=..., n_classes=...) needs "
        "only a function from features to logits",
    )


UNSUPPORTED = tuple(
    CheckpointFormat(name, has, refusing(*unsupported(name)))
    for name, has in (
        ("DTFD-MIL", ("UClassifier.*", "dimReduction.*")),
        ("DTFD-MIL", ("attCls.*",)),
        ("RRT-MIL", ("online_encoder.layers.0.*", "predictor.weight")),
        ("RRT-MIL", ("encoder.layer1.attn.*", "encoder.pool_fn.*")),
        ("WiKG", ("W_head.weight", "W_tail.weight")),
        ("ILRA", ("gab_blocks.0.latent",)),
        ("MambaMIL", ("*.A_log",)),
        ("AdditiveMIL of xMIL", ("pointer.*", "classifier.*")),
        ("MultiModal_Attention_MIL of slideflow", ("encoder_0.0.weight", "prehead_0.1.weight")),
        ("barspoon of STAMP", ("class_tokens.*", "transformer_decoder.*")),
    )
)
_SUPPORTED = (
    *transformers.TRANSMIL_FORMATS,
    *transformers.TRANSFORMER_FORMATS,
    *pooling.CLAM_FORMATS,
    *pooling.ATTRIMIL_FORMATS,
    *pooling.ACMIL_FORMATS,
    *transformers.MHIM_FORMATS,
    *pooling.ABMIL_FORMATS,
    *transformers.DSMIL_FORMATS,
    *pooling.TWO_LAYER_FORMATS,
)
FORMATS: tuple[CheckpointFormat, ...] = (*_SUPPORTED, *UNSUPPORTED)
"""Tried in this order."""


def recognise(state: StateDict, called: str | None = None) -> CheckpointFormat:
    """The format whose tensor names a file has; ``called`` is what it calls itself."""
    for format_ in FORMATS:
        if format_.recognises(state):
            return format_
    families = dict.fromkeys(one.name.removeprefix("Gated ").split()[0] for one in _SUPPORTED)
    name = "" if called is None else f"calls itself {listed([called])} and "
    raise state.refused(
        f"{name}is of no known architecture; its tensors are {listed(list(state))}",
        f"give one of {', '.join(families)}, or {WRAP}",
    )


def complete_options(
    format_: CheckpointFormat, given: Mapping[str, Any], state: StateDict
) -> tuple[Options, tuple[str, ...]]:
    """The user's options filled up with defaults, and a note for every default assumed."""
    options = format_.options
    for name, value in given.items():
        if name not in options:
            fix = f"its options are {', '.join(options)}" if options else "it has none"
            raise state.refused(f"{format_.name} files have no option {name!r}", fix)
        if not options[name].allows(value):
            allowed = " or ".join(map(str, options[name].choices)) or "a positive whole number"
            raise state.refused(f"option {name} is {value!r}", f"choose {allowed}")
    left_open = {name: option for name, option in options.items() if name not in given}
    defaults = {name: option.default for name, option in left_open.items()}
    assumed = tuple(option.assumption for option in left_open.values() if option.assumption)
    return {**defaults, **given}, assumed
