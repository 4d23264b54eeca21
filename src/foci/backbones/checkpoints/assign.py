"""A file's tensors in the places of a backbone: all of them, and nothing left over."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.backbones.base import Backbone
from foci.backbones.checkpoints.formats.base import Reading
from foci.backbones.checkpoints.state_dict import listed
from foci.backbones.registry import ARCHITECTURES
from foci.errors import FociError

FIX = "give weights of an unmodified model, or wrap it in foci.backbones.CallableBackbone"


def empty(reading: Reading) -> Backbone:
    """The backbone without numbers: shapes only, no memory, no random initialisation."""
    try:
        with torch.device("meta"):
            return ARCHITECTURES[reading.architecture](**reading.config)
    except FociError as error:
        raise reading.state.refused(f"{error.where} {error.what}", error.fix) from error


def fitted(
    reading: Reading, backbone: Backbone, family: str
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """The tensors under the backbone's own names in float32, and a note if they were otherwise.

    Refused, by the file's names: a tensor that is missing, one of another shape, one that is not
    finite, and one that the backbone has no place for.
    """
    state = reading.state
    if backbone.n_classes < 2:
        raise state.refused(f"is {family} with {backbone.n_classes} class", "two are the least")
    places = {name: reading.name_of(name) for name in backbone.state_dict()}
    if missing := [theirs for theirs in places.values() if theirs not in state]:
        raise state.refused(f"is {family}, but lacks {listed(missing)}", FIX)
    used = set(places.values())
    if extra := [key for key in state if key not in used and not reading.ignores(key)]:
        raise state.refused(f"is {family}, but holds also {listed(extra)}", FIX)
    tensors = {}
    for name, place in backbone.state_dict().items():
        theirs, tensor = places[name], state[places[name]]
        if tensor.shape != place.shape:
            shapes = f"{list(tensor.shape)}, which does not fit {list(place.shape)}"
            raise state.refused(f"is {family}, but {theirs} has shape {shapes}", FIX)
        tensors[name] = tensor.to(torch.float32)
        if not bool(torch.isfinite(tensors[name]).all()):
            raise state.refused(f"{theirs} holds NaN or Inf", "take an earlier checkpoint")
    stored = {str(state[key].dtype).removeprefix("torch.") for key in used} - {"float32"}
    notes = (f"stored as {' and '.join(sorted(stored))}, used as float32",) if stored else ()
    return tensors, notes


def left_out(reading: Reading) -> tuple[str, ...]:
    """The tensors that play no part in a prediction."""
    return tuple(key for key in reading.state if reading.ignores(key))
