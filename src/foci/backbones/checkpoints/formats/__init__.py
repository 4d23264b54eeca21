"""Checkpoint formats of other projects, recognised by the names of their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foci.backbones.checkpoints.formats import instance, pooling, transformers
from foci.backbones.checkpoints.formats.base import CheckpointFormat, KeyMapping, Options
from foci.backbones.checkpoints.state_dict import WRAP, StateDict, listed
from foci.errors import CheckpointError

SEPARATE_PARTS = {"classifier", "dim_reduction", "attention", "att_classifier"}
"""Entries of a file of DTFD-MIL's authors: one state dict for each part of the model."""


def unsupported(name: str, path: Path) -> CheckpointError:
    """Refusal that names the architecture and the way around it."""
    fix = (
        "wrap the model: foci.backbones.CallableBackbone(function, d_in=..., n_classes=...) needs "
        "only a function from features to logits"
    )
    return CheckpointError(path, f"is {name}, which FOCI does not have", fix)


def _unsupported_format(name: str, *has: str) -> CheckpointFormat:
    def read(state: StateDict, options: Options) -> KeyMapping:
        raise unsupported(name, state.path)

    return CheckpointFormat(name, has=has, read=read)


UNSUPPORTED = (
    _unsupported_format("DTFD-MIL", "UClassifier.*", "dimReduction.*"),
    _unsupported_format("DTFD-MIL", "attCls.*"),
    _unsupported_format("RRT-MIL", "online_encoder.layers.0.*", "predictor.weight"),
    _unsupported_format("RRT-MIL", "encoder.layer1.attn.*", "encoder.pool_fn.*"),
    _unsupported_format("WiKG", "W_head.weight", "W_tail.weight"),
    _unsupported_format("ILRA", "gab_blocks.0.latent"),
    _unsupported_format("MambaMIL", "*.A_log"),
)
"""Recognised by their tensors only to be refused by their name."""

_SUPPORTED = (
    *transformers.TRANSMIL_FORMATS,
    *pooling.CLAM_FORMATS,
    *pooling.ATTRIMIL_FORMATS,
    *pooling.ACMIL_FORMATS,
    *transformers.MHIM_FORMATS,
    *pooling.ABMIL_FORMATS,
    *instance.DSMIL_FORMATS,
    *instance.INSTANCE_FORMATS,
)
FORMATS: tuple[CheckpointFormat, ...] = (*_SUPPORTED, *UNSUPPORTED)
"""Tried in this order."""


def recognise(state: StateDict) -> CheckpointFormat:
    """The format whose tensor names a file has."""
    for format_ in FORMATS:
        if format_.recognises(state):
            return format_
    families = dict.fromkeys(one.name.removeprefix("Gated ").split()[0] for one in _SUPPORTED)
    raise state.refused(
        f"is of no known architecture; its tensors are {listed(list(state))}",
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
