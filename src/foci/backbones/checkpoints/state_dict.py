"""State dict of a checkpoint file, with errors that name the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from foci.errors import CheckpointError

WRAP = "wrap the model in foci.backbones.CallableBackbone"
"""What to do with a model that FOCI does not have."""

WIDEST = 2**20
"""Widest layer; nobody trains such a classifier, and a hostile file may name any width."""

_LONGEST_NAME = 80


class StateDict(dict[str, Tensor]):
    """Named tensors with the path of their file.

    Args:
        path: The file.
        tensors: Its tensors by name.
        notes: What was left out of the file's content, and why.
    """

    def __init__(
        self, path: Path, tensors: Mapping[str, Tensor], notes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(tensors)
        self.path, self.notes = path, notes

    def __missing__(self, key: str) -> Tensor:
        raise self.refused(f"lacks {key}", "give the whole state dict of the classifier")

    def rows(self, layer: str) -> int:
        """Output width of a layer: first dimension of its weight."""
        return self._size(f"{layer}.weight", 0)

    def columns(self, layer: str) -> int:
        """Input width of a layer: second dimension of its weight."""
        return self._size(f"{layer}.weight", 1)

    def count(self, layer: str) -> int:
        """Length of a list of layers: ``{}`` in the name stands for 0, 1, 2, ...

        >>> from torch import zeros
        >>> tensors = {"heads.0.weight": zeros(1), "heads.1.weight": zeros(1)}
        >>> StateDict(Path("a.pt"), tensors).count("heads.{}")
        2
        """
        n = 0
        while f"{layer.format(n)}.weight" in self:
            n += 1
        return n

    def replaced(self, tensors: Mapping[str, Tensor]) -> StateDict:
        """Copy with some tensors replaced or added."""
        return StateDict(self.path, {**self, **tensors}, self.notes)

    def refused(self, what: str, fix: str) -> CheckpointError:
        """Error that names this file."""
        return CheckpointError(self.path, what, fix)

    def _size(self, key: str, dimension: int) -> int:
        shape = list(self[key].shape)
        if len(shape) <= dimension or not all(0 < width <= WIDEST for width in shape):
            raise self.refused(f"{key} has shape {shape}", "give weights of an unmodified model")
        return shape[dimension]


def listed(keys: Sequence[Any], most: int = 6) -> str:
    """A few names that a terminal can print, and how many more there are.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    >>> listed([7, "x" * 1000], most=1)
    '<int> and 1 more'
    """
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(map(_printable, keys[:most])) + more


def _printable(key: Any) -> str:
    if not isinstance(key, str):
        return f"<{type(key).__name__}>"
    plain = key if key.isprintable() else ascii(key[:_LONGEST_NAME])
    return plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}..."
