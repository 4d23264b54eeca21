"""Safe unpickling: read a pickle without importing or calling anything it names.

A pickle is a program: it names functions and the arguments to call them with. Here every name
becomes an inert stand-in, and the few that describe a tensor are kept as a description. No real
function ever reaches the unpickler's stack, so there is nothing that a pickle could run.
Written by hand because ``torch.load(weights_only=True)`` refuses files with pickled settings.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import IO, Any

import torch
from torch import Tensor

from foci.backbones.checkpoints.pickle_limits import check_pickle

_STORAGES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}

_MOST_NAMES = 4096
_MOST_DIMENSIONS = 16
_WIDEST = 2**40


class Inert:
    """Base of stand-ins whose state a pickle cannot set."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        """Ignore the state."""


class Stub(Inert):
    """Stand-in for an object of any class, which is not imported; discards what is put into it."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Stub:
        """An empty object, whatever the arguments."""
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Stub:
        """Another object that does nothing."""
        return Stub()

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def append(self, item: Any) -> None:
        """Ignore the item of a list."""

    def extend(self, items: Any) -> None:
        """Ignore the items of a list."""

    def add(self, item: Any) -> None:
        """Ignore the item of a set."""


class Record(dict[Any, Any]):
    """Stand-in for an OrderedDict, without the attributes that a pickle may set on one.

    An OrderedDict is pickled empty, and its items follow.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        """Ignore the attributes."""


class Storage(Inert):
    """A tensor storage, known by dtype and length before its numbers are read."""

    __slots__ = ("dtype", "numbers", "numel")

    def __init__(self, dtype: torch.dtype, numel: int) -> None:
        self.dtype, self.numel = dtype, numel
        self.numbers: Tensor | None = None

    @property
    def n_bytes(self) -> int:
        """Length in the file."""
        return self.numel * self.dtype.itemsize

    def fill(self, content: bytes) -> None:
        """Take the numbers from the file's bytes."""
        if len(content) != self.n_bytes:
            raise ValueError(f"{len(content)} bytes where {self.n_bytes} should be")
        self.numbers = (
            torch.frombuffer(bytearray(content), dtype=self.dtype)
            if content
            else torch.empty(0, dtype=self.dtype)
        )


class StoredTensor(Inert):
    """A tensor as the pickle describes it: a strided view of a storage."""

    __slots__ = ("offset", "size", "storage", "stride")

    def __init__(
        self, storage: Storage, offset: int, size: tuple[int, ...], stride: tuple[int, ...]
    ) -> None:
        if not isinstance(storage, Storage):
            raise ValueError("a tensor without storage")
        self.storage, self.offset, self.size, self.stride = storage, offset, size, stride

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.size)

    def read(self) -> Tensor:
        """Read the tensor; a view that leaves its storage is refused."""
        sane = isinstance(self.size, tuple) and len(self.size) <= _MOST_DIMENSIONS
        if not sane or not all(type(n) is int and 0 <= n <= _WIDEST for n in self.size):
            raise ValueError("a tensor of an impossible shape")
        if self.storage.numbers is None or self.numel > self.storage.numel:
            raise ValueError("a tensor larger than its storage")
        return torch.as_strided(self.storage.numbers, self.size, self.stride, self.offset).clone()


class _TensorOfStorage(Inert):
    def __call__(self, storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> StoredTensor:
        return StoredTensor(storage, offset, size, stride)


class _TensorOfParameter(Inert):
    def __call__(self, data: Any, *_: Any) -> Any:
        return data


_KNOWN = {
    ("collections", "OrderedDict"): Record,
    ("torch._utils", "_rebuild_tensor"): _TensorOfStorage(),
    ("torch._utils", "_rebuild_tensor_v2"): _TensorOfStorage(),
    ("torch._utils", "_rebuild_parameter"): _TensorOfParameter(),
    ("torch._utils", "_rebuild_parameter_with_state"): _TensorOfParameter(),
}


def _no_storage(dtype: torch.dtype, key: str, numel: int) -> Storage:
    """Refuse tensors, for pickles that should hold none."""
    raise ValueError("a tensor where none should be")


class InertUnpickler(pickle.Unpickler):
    """Unpickler of dictionaries, lists, numbers, strings and tensors; stubs everything else.

    Args:
        file: Open at the beginning of a pickle.
        storage: Gives the storage of a type, a key and a length.

    >>> import io, os
    >>> InertUnpickler(io.BytesIO(pickle.dumps({"hidden": 128, "run": os.system}))).load()["hidden"]
    128
    """

    def __init__(
        self, file: IO[bytes], storage: Callable[[torch.dtype, str, int], Storage] = _no_storage
    ) -> None:
        check_pickle(file)
        super().__init__(file, encoding="utf-8")
        self._storage = storage
        self._stubs: dict[tuple[str, str], type[Stub]] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Stand-in for a name in the pickle; nothing is imported."""
        if (module, name) in _KNOWN:
            return _KNOWN[module, name]
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        if len(self._stubs) >= _MOST_NAMES:
            raise ValueError(f"more than {_MOST_NAMES} classes and functions")
        if (module, name) not in self._stubs:
            self._stubs[module, name] = type(name, (Stub,), {"__module__": module})
        return self._stubs[module, name]

    def persistent_load(self, pid: Any) -> Any:
        """Storages, and the classes that old files keep with their source."""
        kind, what, *rest = pid
        if kind == "module":
            return what
        key, _location, numel, *view = rest
        valid = isinstance(what, torch.dtype) and type(numel) is int and 0 <= numel <= _WIDEST
        valid = valid and isinstance(key, str)
        if kind != "storage" or not valid or any(part is not None for part in view):
            raise ValueError("an unknown kind of storage")
        return self._storage(what, key, numel)
