"""CheckpointFormat: tensor names that tell a format, its options, and the mapping of its keys.

A :class:`StateDict` is what a file holds: named tensors, and errors that name the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
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
        entries: What stood around the tensors in the file, by name.
    """

    def __init__(
        self,
        path: Path,
        tensors: Mapping[str, Tensor],
        notes: tuple[str, ...] = (),
        entries: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(tensors)
        self.path, self.notes, self.entries = path, notes, entries

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

    def replaced(self, tensors: Mapping[str, Tensor], without: Sequence[str] = ()) -> StateDict:
        """Copy with some tensors replaced or added, and others left out."""
        kept = {key: tensor for key, tensor in self.items() if key not in without}
        return StateDict(self.path, {**kept, **tensors}, self.notes, self.entries)

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


@dataclass(frozen=True)
class Option:
    """A setting of the classifier that its tensors do not show.

    Attributes:
        default: Value if the user gives none.
        assumption: What the default means, for the notes; empty if it needs no mention.
        choices: Allowed values; without any, a positive number, whole unless the default is not.
        tries: Further values that are tried where no choice is given, besides the default.
        predicts: Whether the prediction depends on it.
    """

    default: Any
    assumption: str = ""
    choices: tuple[Any, ...] = ()
    tries: tuple[Any, ...] = ()
    predicts: bool = True

    @property
    def candidates(self) -> tuple[Any, ...]:
        """Values to compare with a classifier's known answers, the default first."""
        others = (*self.choices, *self.tries) if self.predicts else ()
        return (self.default, *(value for value in others if value != self.default))

    def allows(self, value: Any) -> bool:
        """Whether a user may give this value."""
        if self.choices:
            return value in self.choices
        numbers = (int, float) if isinstance(self.default, float) else (int,)
        return value is self.default or (type(value) in numbers and value > 0)


@dataclass(frozen=True)
class KeyMapping:
    """How the keys of a file's state dict map to those of a backbone.

    Attributes:
        architecture: Name of the registered class.
        config: Its constructor's arguments, read from shapes and options.
        names: For each of its modules or parameters, the name that the file uses.
        state: The file's tensors, in the shapes that the class expects.
        ignored: Patterns of names that play no part in a prediction.
        notes: What was assumed or left out.
    """

    architecture: str
    config: dict[str, Any]
    names: Mapping[str, str]
    state: StateDict
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def name_of(self, ours: str) -> str:
        """Key in the file of one of the backbone's tensors."""
        if ours in self.names:
            return self.names[ours]
        module, _, part = ours.rpartition(".")
        return f"{self.names[module]}.{part}"

    def ignores(self, key: str) -> bool:
        """Whether a tensor of the file may be left out."""
        return any(fnmatchcase(key, pattern) for pattern in self.ignored)


Options = Mapping[str, Any]
"""Value of every option of a format."""

Reader = Callable[[StateDict, Options], KeyMapping]


@dataclass(frozen=True)
class CheckpointFormat:
    """Checkpoint files of one architecture under one set of tensor names.

    Attributes:
        name: In messages and in the documentation.
        has: Patterns, each of which a tensor name of the file must match.
        lacks: Patterns that no tensor name of the file may match.
        read: Makes the mapping from tensors and options.
        options: Settings that the user may have to give.
    """

    name: str
    has: tuple[str, ...]
    read: Reader
    lacks: tuple[str, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)

    def recognises(self, keys: Iterable[str]) -> bool:
        """Whether a file with these tensor names is of this format."""
        keys = list(keys)

        def matched(pattern: str) -> bool:
            return any(fnmatchcase(key, pattern) for key in keys)

        return all(map(matched, self.has)) and not any(map(matched, self.lacks))


def refusing(what: str, fix: str) -> Reader:
    """Reader of a format that is recognised only to be refused by its name."""

    def read(state: StateDict, options: Options) -> KeyMapping:
        raise state.refused(what, fix)

    return read


def projection_activation(default: str, why: str) -> Option:
    """Option for the activation behind the first layer, which has no parameters."""
    other = {"relu": "gelu", "gelu": "relu"}[default]
    note = f"projection_activation={default!r}, {why}; the file does not tell it from {other!r}"
    return Option(default, note, ("relu", "gelu"))


def require_option(state: StateDict, options: Options, name: str, good: Any, what: str) -> None:
    """Refuse a file that may be of either of two models until the user says which one it is.

    FOCI has the model of the option's value ``good`` and not the other one.
    """
    if options[name] is None:
        fix = f"give {name}={good!r} if it is (or --expect); if not, {WRAP}"
        raise state.refused(f"{what}: the tensors do not show it", fix)
    if options[name] != good:
        raise state.refused(f"{what}: {name}={options[name]!r} is not supported", WRAP)


MHIM_V1 = projection_activation("relu", "the default of version 1")
MHIM_V2 = projection_activation("gelu", "from the configuration shipped with version 2")
"""Of the MHIM-MIL code."""

RELU_BY_DEFAULT = Option("relu", "projection_activation='relu', the default", ("relu", "gelu"))

MIL_LAB_PROJECTION = "patch_embed.{}"
"""Its layers stand at 0, 3, 6, ... as ours do."""


def projection_names(state: StateDict, theirs: str, step: int = 3) -> dict[str, str]:
    """Key names of a projection of one layer, or of several where ``theirs`` has a ``{}``.

    It stands for the place of a layer, which is 0 at first and then one ``step`` after the other.
    """
    most = len(state) if "{}" in theirs else 1
    names = (theirs.format(i * step) for i in range(most))
    present = takewhile(lambda layer: f"{layer}.weight" in state, names)
    return {f"projection.{3 * i}": layer for i, layer in enumerate(present)}


def widths(state: StateDict, projection: str) -> dict[str, int]:
    """Feature and token width, of the projection between them."""
    return {"d_in": state.columns(projection), "d": state.rows(projection)}


def second_layer(state: StateDict, net: str) -> str:
    """Name of the second layer of a two-layer net, after a dropout or not."""
    return f"{net}.3" if f"{net}.3.weight" in state else f"{net}.2"


def gated_names(ours: str, theirs: str) -> dict[str, str]:
    """Key names of a gated attention net as CLAM named its layers, and most others after it."""
    parts = {"V": "attention_a.0", "U": "attention_b.0", "w": "attention_c"}
    return {f"{ours}.{mine}": f"{theirs}.{their}" for mine, their in parts.items()}


ONE_OUTPUT = "one sigmoid output u became the two logits [0, u]"


def two_logits(state: StateDict, head: str) -> tuple[StateDict, int, tuple[str, ...]]:
    r"""Turn one sigmoid output u into two softmax logits ``[0, u]``; leave more outputs alone.

    .. math:: \mathrm{softmax}([0, u])_1 = \frac{e^u}{1 + e^u} = \sigma(u)

    Gives the tensors, the number of classes, and a note where something was done.
    """
    outputs = state.rows(head)
    if outputs != 1:
        return state, outputs, ()
    layer = {key: state[key] for key in (f"{head}.weight", f"{head}.bias") if key in state}
    widened = {key: torch.cat([torch.zeros_like(u), u]) for key, u in layer.items()}
    return state.replaced(widened), 2, (ONE_OUTPUT,)
