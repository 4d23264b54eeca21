"""Safe unpickling: read a pickle without importing or calling anything it names.

A pickle is a program: it names functions and the arguments to call them with. Here every name
becomes an inert stand-in, and the few that describe a tensor are kept as a description. No real
function ever reaches the unpickler's stack, so there is nothing that a pickle could run.
Written by hand because ``torch.load(weights_only=True)`` refuses files with pickled settings.
"""

from __future__ import annotations

import math
import pickle
import pickletools
from collections.abc import Callable
from typing import IO, Any, NamedTuple

import torch
from torch import Tensor

MOST_INSTRUCTIONS = 2_000_000
MOST_HASHED = 20_000_000
"""Parts of all keys of all dictionaries and sets together."""
MOST_KEYS, MOST_OTHER_KEYS = 50_000, 10_000
"""Of all dictionaries and sets together, and those that are no text: numbers can be chosen so that
all of them have one hash, and each is then compared with all others."""
MOST_BITS = 4096
DEEPEST = 32

_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")
_GETS = ("GET", "BINGET", "LONG_BINGET")
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Size(NamedTuple):
    """What lies on the stack: parts and depth of a tuple, 1 and 0 of anything else."""

    parts: int
    depth: int


_ONE, _TEXT, _MARK = _Size(1, 0), _Size(1, 0), _Size(0, -1)

_ADDS_ONE = {
    code.name
    for code in pickletools.opcodes
    if not code.stack_before and len(code.stack_after) == 1 and code.name not in (*_GETS, "MARK")
}
"""Numbers, strings, names and empty lists: most of any pickle."""


_TEXTS = {name for name in _ADDS_ONE if "UNICODE" in name or "STRING" in name}


def check_pickle(file: IO[bytes]) -> None:
    """Check the instructions of one pickle before they are followed, then seek back to its start.

    Following a pickle may cost far more than its bytes: one instruction reserves gigabytes for the
    memo, and a key that holds itself twice, sixty times over, takes for ever to hash. Here the
    instructions are only read: the sizes of tuples on the stack are followed, and nothing is
    built.

    Raises:
        ValueError: If there are too many, or they ask for too much.

    >>> import io, pickle
    >>> check_pickle(io.BytesIO(pickle.dumps({"weight": (3, 4)})))
    >>> key = (1,)
    >>> for _ in range(60):
    ...     key = (key, key)
    >>> check_pickle(io.BytesIO(pickle.dumps(key)))
    Traceback (most recent call last):
    ValueError: tuples inside tuples, more than 32 deep
    """
    start, stack = file.tell(), _SizeStack()
    for done, (code, argument, _) in enumerate(pickletools.genops(file)):
        if done >= MOST_INSTRUCTIONS:
            raise ValueError(f"a pickle of more than {MOST_INSTRUCTIONS} instructions")
        if isinstance(argument, int) and argument.bit_length() > MOST_BITS:
            raise ValueError(f"a whole number of {argument.bit_length()} bits")
        if code.name in _ADDS_ONE:
            stack.sizes.append(_TEXT if code.name in _TEXTS else _ONE)
        else:
            stack.follow(code, argument, done)
    file.seek(start)


class _SizeStack:
    """The unpickler's stack and memo, with sizes instead of objects."""

    def __init__(self) -> None:
        self.sizes: list[_Size] = []
        self.memo: dict[int, _Size] = {}
        self.hashed, self.keys, self.other_keys = 0, 0, 0

    def follow(self, code: pickletools.OpcodeInfo, argument: object, done: int) -> None:
        """One instruction, after ``done`` others."""
        name = code.name
        if name in _PUTS:
            place = int(str(argument))  # the textual instruction gives a string
            if place > done:
                raise ValueError(f"a memo of {place} places after {done} instructions")
            self.memo[place] = self._top()
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self._top()
        elif name in _GETS:
            self.sizes.append(self.memo.get(int(str(argument)), _ONE))
        elif name == "DUP":
            self.sizes.append(self._top())
        elif name in _TUPLES:
            self._join(self._take(_TUPLES[name]))
        elif name == "TUPLE":
            self._join(self._take_above_mark())
        elif name == "FROZENSET":
            keys = self._take_above_mark()
            self._hash(keys)
            self._join(keys)
        elif name == "SETITEM":
            self._hash(self._take(2)[:1])
        elif name == "SETITEMS":
            self._hash(self._take_above_mark()[::2])
        elif name == "DICT":
            self._hash(self._take_above_mark()[::2])
            self.sizes.append(_ONE)
        elif name == "ADDITEMS":
            self._hash(self._take_above_mark())
        else:  # by what it takes from the stack and what it puts there
            takes = code.stack_before
            if pickletools.stackslice in takes:
                self._take_above_mark()
                takes = takes[: takes.index(pickletools.markobject)]
            self._take(len(takes))
            puts = (new is pickletools.markobject for new in code.stack_after)
            self.sizes += [_MARK if mark else _ONE for mark in puts]

    def _top(self) -> _Size:
        return self.sizes[-1] if self.sizes else _ONE

    def _take(self, n: int) -> list[_Size]:
        start = max(0, len(self.sizes) - n)
        taken = self.sizes[start:]
        del self.sizes[start:]
        return taken

    def _take_above_mark(self) -> list[_Size]:
        for n, size in enumerate(reversed(self.sizes)):
            if size is _MARK:
                taken = self._take(n)
                self._take(1)
                return taken
        raise ValueError("a list without a beginning")

    def _join(self, inside: list[_Size]) -> None:
        depth = 1 + max((size.depth for size in inside), default=0)
        if depth > DEEPEST:
            raise ValueError(f"tuples inside tuples, more than {DEEPEST} deep")
        self.sizes.append(_Size(1 + sum(size.parts for size in inside), depth))

    def _hash(self, keys: list[_Size]) -> None:
        self.hashed += sum(size.parts for size in keys)
        if self.hashed > MOST_HASHED:
            raise ValueError("keys of too many parts")
        self.keys += len(keys)
        self.other_keys += sum(size is not _TEXT for size in keys)
        if self.other_keys > MOST_OTHER_KEYS:
            raise ValueError(f"more than {MOST_OTHER_KEYS} keys that are no text")
        if self.keys > MOST_KEYS:
            raise ValueError(f"more than {MOST_KEYS} keys")


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
        """An empty object."""
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Stub:
        """Another object that does nothing."""
        return Stub()

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def append(self, item: Any) -> None:
        """Ignore items, as ``extend`` and ``add`` do."""

    extend = add = append


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
    """A tensor as the pickle describes it: a strided view of a storage, perhaps with bits set.

    torch stores a lazy negation as the bit ``neg`` beside the numbers that are to be negated.
    """

    __slots__ = ("bits", "offset", "size", "storage", "stride")

    def __init__(
        self,
        storage: Storage,
        offset: int,
        size: tuple[int, ...],
        stride: tuple[int, ...],
        bits: Any = None,
    ) -> None:
        if not isinstance(storage, Storage):
            raise ValueError("a tensor without storage")
        self.storage, self.offset, self.size, self.stride = storage, offset, size, stride
        self.bits = bits

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
        bits = {} if self.bits is None else self.bits
        if not isinstance(bits, dict) or not set(bits) <= {"neg"}:
            raise ValueError("a tensor with bits that FOCI does not know")
        own = torch.as_strided(self.storage.numbers, self.size, self.stride, self.offset)
        return -own if bits.get("neg") else own.clone()


class _RebuildTensor(Inert):
    def __call__(
        self, storage: Any, offset: Any, size: Any, stride: Any, *rest: Any
    ) -> StoredTensor:
        gradient_hooks_bits = (*rest, None, None, None)
        return StoredTensor(storage, offset, size, stride, gradient_hooks_bits[2])


class _RebuildParameter(Inert):
    def __call__(self, data: Any, *_: Any) -> Any:
        return data


_KNOWN = {
    ("collections", "OrderedDict"): Record,
    ("torch._utils", "_rebuild_tensor"): _RebuildTensor(),
    ("torch._utils", "_rebuild_tensor_v2"): _RebuildTensor(),
    ("torch._utils", "_rebuild_parameter"): _RebuildParameter(),
    ("torch._utils", "_rebuild_parameter_with_state"): _RebuildParameter(),
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
