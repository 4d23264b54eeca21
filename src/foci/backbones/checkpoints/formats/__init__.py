"""Checkpoint formats of other projects, recognised by the names of their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foci.backbones.checkpoints.formats import base, instance, pooling, transformers
from foci.backbones.checkpoints.formats.base import CheckpointFormat
from foci.backbones.checkpoints.state_dict import StateDict, listed

FORMATS: tuple[CheckpointFormat, ...] = (
    *transformers.TRANSMIL_FORMATS,
    *pooling.CLAM_FORMATS,
    *pooling.ATTRIMIL_FORMATS,
    *pooling.ACMIL_FORMATS,
    *transformers.MHIM_FORMATS,
    *pooling.ABMIL_FORMATS,
    *instance.DSMIL_FORMATS,
    *instance.INSTANCE_FORMATS,
    *base.FORMATS,
)
"""Tried in this order."""


def recognise(state: StateDict) -> CheckpointFormat:
    """The format whose tensor names a file has."""
    for format_ in FORMATS:
        if format_.recognises(state):
            return format_
    supported = (format_ for format_ in FORMATS if format_ not in base.FORMATS)
    families = dict.fromkeys(
        format_.name.removeprefix("Gated ").split()[0] for format_ in supported
    )
    known = ", ".join(families)
    raise state.refused(
        f"is of no known architecture; its tensors are {listed(list(state))}",
        f"give one of {known}, or wrap the model in foci.backbones.CallableBackbone",
    )


def complete_options(
    format_: CheckpointFormat, given: Mapping[str, Any], state: StateDict
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The user's options filled up with defaults, and a note for every default assumed."""
    for name, value in given.items():
        if name not in format_.options:
            known = (
                f"its options are {', '.join(format_.options)}"
                if format_.options
                else "it has none"
            )
            raise state.refused(f"{format_.name} files have no option {name!r}", known)
        if not format_.options[name].allows(value):
            raise state.refused(
                f"option {name} is {value!r}", f"choose {format_.options[name].allowed}"
            )
    values = {name: option.default for name, option in format_.options.items()}
    assumed = tuple(
        option.assumption
        for name, option in format_.options.items()
        if name not in given and option.assumption
    )
    return {**values, **given}, assumed
