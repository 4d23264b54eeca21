"""Read encoder weights from a local file without executing anything, and check that they fit."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foci.errors import FociError

if TYPE_CHECKING:
    from torch import Tensor, nn

_SHOWN = 3


def read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors by name, of a ``.safetensors`` file or a ``state_dict`` saved by ``torch.save``."""
    if not path.is_file():
        raise FociError(path, "does not exist", "give the downloaded weights with --weights")
    try:
        content = _load(path)
    except pickle.UnpicklingError:
        what = "holds pickled objects, which FOCI does not execute"
        raise FociError(path, what, "give the model's state_dict or .safetensors file") from None
    except Exception as error:  # safetensors and torch raise errors of many kinds
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise FociError(path, f"cannot be read ({why})", "download it again") from error
    import torch

    if not isinstance(content, dict) or not all(
        isinstance(value, torch.Tensor) for value in content.values()
    ):
        raise FociError(path, "is not a state_dict of tensors", "give the encoder's weights")
    return content


def fit_weights(model: nn.Module, state: dict[str, Tensor], path: Path) -> None:
    """Put the tensors into a model; every name and shape must agree.

    Args:
        model: May be on the meta device: its parameters become the tensors themselves.
        state: Of :func:`read_weights`.
        path: For the error message.

    Raises:
        FociError: With the keys that differ.
    """
    own = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in state.items()}
    shapes = [
        f"{name} {found[name]} instead of {own[name]}"
        for name in own
        if name in found and found[name] != own[name]
    ]
    differs = [
        *_listed("missing", [name for name in own if name not in found]),
        *_listed("unexpected", [name for name in found if name not in own]),
        *_listed("of another shape", shapes),
    ]
    if differs:
        raise FociError(
            path, f"holds other weights: {'; '.join(differs)}", "give this encoder's own file"
        )
    model.load_state_dict(state, assign=True)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _load(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    import torch

    return torch.load(path, map_location="cpu", weights_only=True, mmap=True)


def _listed(what: str, names: list[str]) -> list[str]:
    """For example "3 missing (a, b, c, ...)"."""
    if not names:
        return []
    more = ", ..." if len(names) > _SHOWN else ""
    return [f"{len(names)} {what} ({', '.join(names[:_SHOWN])}{more})"]
