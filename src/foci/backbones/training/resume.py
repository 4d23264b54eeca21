"""Save and resume a training run between two epochs, as plain tensors on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foci.files.atomic import write_whole


@dataclass
class RunState:
    """State of a training run after its last complete epoch.

    Stage of the objective, epochs finished in it, the stage's smallest validation loss with the
    weights that had it, and one entry per finished epoch of all stages.
    """

    stage: int
    epoch: int
    best_loss: float
    best: dict[str, Tensor]
    history: list[dict[str, Any]]


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """Copy of the weights on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}


def save_run(
    path: Path, key: str, state: RunState, model: nn.Module, objective: nn.Module, optimizer: Any
) -> None:
    """Save everything that the next epoch depends on; ``key`` identifies the run."""
    from safetensors.torch import save

    tensors = {f"best/{k}": v for k, v in state.best.items()}
    tensors |= {f"model/{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"objective/{k}": v for k, v in objective.state_dict().items()}
    for index, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{name}": value for name, value in slots.items()}
    progress = {"key": key} | {k: v for k, v in vars(state).items() if k != "best"}
    plain = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
    write_whole(path, save(plain, {"run": json.dumps(progress)}))


def stored_key(path: Path) -> str | None:
    """Key of the run that a state belongs to; None if the file is missing or damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            key = json.loads(file.metadata()["run"])["key"]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None
    return key if isinstance(key, str) else None


def load_run(
    path: Path, key: str, model: nn.Module, objective: nn.Module, optimizer: Any
) -> RunState | None:
    """Restore a run with the same key; None if the file is missing, damaged or of another run."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            progress = json.loads(file.metadata()["run"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None
    if progress.pop("key") != key:
        return None
    model.load_state_dict(_part(tensors, "model"))
    objective.load_state_dict(_part(tensors, "objective"))
    slots: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _part(tensors, "optimizer").items():
        index, slot = name.split("/")
        slots.setdefault(int(index), {})[slot] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": slots})
    return RunState(best=_part(tensors, "best"), **progress)


def _part(tensors: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    return {k.removeprefix(f"{name}/"): v for k, v in tensors.items() if k.startswith(f"{name}/")}
