"""Find the state dict in a checkpoint's content and strip wrapper prefixes from its keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from torch import Tensor

from foci.backbones.checkpoints.formats.base import SEPARATE_PARTS, unsupported
from foci.backbones.checkpoints.state_dict import StateDict, listed
from foci.backbones.checkpoints.unpickle import StoredTensor, Stub
from foci.errors import CheckpointError

_ENTRIES = (
    "state_dict",
    "model_state_dict",
    "model_state",
    "model",
    "net",
    "weights",
    "ema",
)
"""Keys under which training scripts keep the state dict, beside the optimizer and the like."""

_SHARED, _FEW = 4, 2**20
"""Tied weights share a storage; this many times over, and small ones, they may."""

_DEPTH = 8
"""Most levels of nesting; a hostile file may contain itself."""

_PREFIXES = ("module.", "model.", "net.", "network.", "mil.", "_orig_mod.")
"""Put before *every* name by DataParallel, Lightning or MIL-Lab, and ``torch.compile``."""

_LOSSES = ("loss.", "loss_fn.", "criterion.")
"""Prefixes of what a Lightning module may keep beside its model."""

_METRICS = re.compile(
    r"(^|_)(train|training|val|valid|validation|test)(_|$)"
    r"|metric|accuracy|(^|_)acc($|_)|auroc|(^|_)auc($|_)|f1|precision|recall|confmat|kappa",
    re.IGNORECASE,
)
"""Attributes of a Lightning module that are metrics; theirs are buffers, not parameters."""


def state_dict_of(content: Any, path: Path) -> StateDict:
    """Extract the classifier's state dict, with plain keys, from a file's content."""
    content, notes = _innermost(content, path)
    if not isinstance(content, dict):
        raise _no_state_dict(content, path)
    stored = {
        key: value
        for key, value in content.items()
        if isinstance(key, str) and isinstance(value, StoredTensor | Tensor)
    }
    _check_sharing([value for value in stored.values() if isinstance(value, StoredTensor)], path)
    tensors = {key: _tensor(value, key, path) for key, value in stored.items()}
    if not tensors:
        if content.keys() >= SEPARATE_PARTS:
            raise unsupported("DTFD-MIL", path)
        raise CheckpointError(
            path,
            f"holds no state dict; its entries are {listed(list(content))}",
            "save model.state_dict()",
        )
    if others := [key for key in content if key not in tensors]:
        notes.append(f"not tensors, left out: {listed(others)}")
    losses = [key for key in tensors if key.startswith(_LOSSES)]
    if losses:
        notes.append(f"part of the loss, left out: {listed(losses)}")
    inner = {key: tensor for key, tensor in tensors.items() if key not in losses}
    if metrics := _metrics(inner):
        notes.append(f"metrics, left out: {listed(metrics)}")
    tensors = _stripped({key: inner[key] for key in inner if key not in metrics})
    return StateDict(path, _attention_alone(tensors), tuple(notes))


def _innermost(content: Any, path: Path) -> tuple[Any, list[str]]:
    notes: list[str] = []
    for _ in range(_DEPTH + 1):
        if not isinstance(content, dict) or (entry := _entry(content)) is None:
            return content, notes
        if "teacher" in content and content["teacher"] is not None:
            notes.append("the file holds a teacher too; the student ('model') is read")
        elif "ema" in content and entry != "ema":
            notes.append(f"the file holds averaged weights ('ema') too; {entry!r} is read")
        content = content[entry]
    raise CheckpointError(
        path, f"holds a state dict more than {_DEPTH} entries deep", "save model.state_dict()"
    )


def _entry(content: dict[Any, Any]) -> str | None:
    found = (key for key in _ENTRIES if key in content)
    return next((key for key in found if isinstance(content[key], dict | Stub)), None)


def _no_state_dict(content: Any, path: Path) -> CheckpointError:
    if isinstance(content, Stub):
        name = f"{type(content).__module__}.{type(content).__name__}"
        return CheckpointError(
            path,
            f"holds a pickled object ({name}), which FOCI does not execute",
            "save model.state_dict() instead of the model",
        )
    what = "a single tensor" if isinstance(content, StoredTensor) else type(content).__name__
    return CheckpointError(
        path, f"holds {what}, not a state dict", "give the classifier's weights, not features"
    )


def _tensor(value: StoredTensor | Tensor, key: str, path: Path) -> Tensor:
    if isinstance(value, Tensor):
        return value
    try:
        return value.read()
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        where = f"{listed([key])} cannot be read ({error})"
        raise CheckpointError(path, where, "save it again") from error


def _check_sharing(tensors: list[StoredTensor], path: Path) -> None:
    """Refuse many tensors that share a few numbers: each would become a copy."""
    storages = {id(one.storage): one.storage.numel for one in tensors}
    available = sum(storages.values())
    try:
        wanted = sum(one.numel for one in tensors if len(one.size) <= _DEPTH)
    except TypeError:
        return  # reading such a tensor says what is wrong with it
    if wanted > _SHARED * available + _FEW:
        raise CheckpointError(
            path,
            f"holds tensors of {wanted} numbers that share {available}",
            "save model.state_dict() of the classifier itself",
        )


def _metrics(tensors: dict[str, Tensor]) -> list[str]:
    """Buffers of metrics beside a model whose own names all have a wrapper's prefix."""
    beside = [key for key in tensors if not key.startswith(_PREFIXES)]
    if len(beside) == len(tensors):
        return []
    buffers = [key for key in beside if not key.endswith((".weight", ".bias"))]
    return [key for key in buffers if _METRICS.search(key.partition(".")[0])]


def _stripped(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    while tensors and (prefix := _shared_prefix(tensors)) is not None:
        tensors = {key.removeprefix(prefix): tensor for key, tensor in tensors.items()}
    return tensors


def _shared_prefix(tensors: dict[str, Tensor]) -> str | None:
    return next((p for p in _PREFIXES if all(key.startswith(p) for key in tensors)), None)


def _attention_alone(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Undo CLAM's DataParallel around its attention net.

    Only directly after ``attention_net.``: the ungated net has a ``module`` of its own further in.
    """
    return {
        re.sub(r"^attention_net\.module\.", "attention_net.", key): tensor
        for key, tensor in tensors.items()
    }
