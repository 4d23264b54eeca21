"""Match a file's tensors to a backbone's state dict, strictly: none missing, none left over."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.backbones.base import Backbone
from foci.backbones.checkpoints.formats.base import KeyMapping
from foci.backbones.checkpoints.state_dict import listed
from foci.backbones.registry import ARCHITECTURES
from foci.errors import FociError

_FIX = "give weights of an unmodified model, or wrap it in foci.backbones.CallableBackbone"

_MOST_PARTS = 4096
"""Most classes, branches or layers; each is a module of its own."""


def empty_backbone(mapping: KeyMapping) -> Backbone:
    """Build the backbone on the meta device: shapes only, no memory, no random initialisation."""
    for part in ("n_classes", "branches", "projection_layers"):
        if mapping.config.get(part, 0) > _MOST_PARTS:
            raise mapping.state.refused(f"has {part}={mapping.config[part]}", _FIX)
    try:
        with torch.device("meta"):
            return ARCHITECTURES[mapping.architecture](**mapping.config)
    except FociError as error:
        raise mapping.state.refused(f"{error.where} {error.what}", error.fix) from error


def match_tensors(
    mapping: KeyMapping, backbone: Backbone, format_name: str
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """State dict in float32 under the backbone's own keys, and a note on any other precision.

    Refused, by the file's keys: a tensor that is missing, one of another shape, one that is not
    finite, and one that the backbone has no place for.
    """
    state = mapping.state
    if backbone.n_classes < 2:
        raise state.refused(
            f"is {format_name} with {backbone.n_classes} class", "two are the least"
        )
    places = {name: mapping.name_of(name) for name in backbone.state_dict()}
    if missing := [theirs for theirs in places.values() if theirs not in state]:
        raise state.refused(f"is {format_name}, but lacks {listed(missing)}", _FIX)
    used = set(places.values())
    if extra := [key for key in state if key not in used and not mapping.ignores(key)]:
        raise state.refused(f"is {format_name}, but holds also {listed(extra)}", _FIX)
    tensors = {}
    for name, place in backbone.state_dict().items():
        theirs, tensor = places[name], state[places[name]]
        if tensor.shape != place.shape:
            shapes = f"{list(tensor.shape)}, which does not fit {list(place.shape)}"
            raise state.refused(f"is {format_name}, but {theirs} has shape {shapes}", _FIX)
        tensors[name] = tensor.to(torch.float32)
        if not bool(torch.isfinite(tensors[name]).all()):
            raise state.refused(f"{theirs} holds NaN or Inf", "take an earlier checkpoint")
    stored = {str(state[key].dtype).removeprefix("torch.") for key in used} - {"float32"}
    notes = (f"stored as {' and '.join(sorted(stored))}, used as float32",) if stored else ()
    return tensors, notes


def ignored_keys(mapping: KeyMapping) -> tuple[str, ...]:
    """Keys of the tensors that play no part in a prediction."""
    return tuple(key for key in mapping.state if mapping.ignores(key))
