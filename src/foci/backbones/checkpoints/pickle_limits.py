"""Check a pickle's instructions before they are followed: no huge memo, no endless keys.

Following a pickle may cost far more than its bytes: one instruction reserves gigabytes for the
memo, and a key that holds itself twice, sixty times over, takes for ever to hash. Here the
instructions are only read: the sizes of tuples on the stack are followed, and nothing is built.
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterable
from typing import IO, NamedTuple

MOST_INSTRUCTIONS = 2_000_000
MOST_HASHED = 20_000_000
"""Parts of all keys of all dictionaries and sets together."""
MOST_BITS = 4096
DEEPEST = 32

_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")
_GETS = ("GET", "BINGET", "LONG_BINGET")
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Size(NamedTuple):
    """What lies on the stack: parts and depth of a tuple, 1 and 0 of anything else."""

    parts: int
    depth: int


_ONE, _MARK = _Size(1, 0), _Size(0, -1)

_ADDS_ONE = {
    code.name
    for code in pickletools.opcodes
    if not code.stack_before and len(code.stack_after) == 1 and code.name not in (*_GETS, "MARK")
}
"""Numbers, strings, names and empty lists: most of any pickle."""


def check_pickle(file: IO[bytes]) -> None:
    """Read the instructions of one pickle, then go back to its beginning.

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
    start = file.tell()
    _Stack().follow(pickletools.genops(file))
    file.seek(start)


class _Stack:
    def __init__(self) -> None:
        self.sizes: list[_Size] = []
        self.memo: dict[int, _Size] = {}
        self.hashed = 0

    def follow(self, program: Iterable[tuple[pickletools.OpcodeInfo, object, int | None]]) -> None:
        for done, (code, argument, _) in enumerate(program):
            if done >= MOST_INSTRUCTIONS:
                raise ValueError(f"a pickle of more than {MOST_INSTRUCTIONS} instructions")
            if isinstance(argument, int) and argument.bit_length() > MOST_BITS:
                raise ValueError(f"a whole number of {argument.bit_length()} bits")
            if code.name in _ADDS_ONE:
                self.sizes.append(_ONE)
            else:
                self._step(code, argument, done)

    def _step(self, code: pickletools.OpcodeInfo, argument: object, done: int) -> None:
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
            self._join(self._hash(self._take_above_mark()))
        elif name == "SETITEM":
            self._hash(self._take(2)[:1])
        elif name == "SETITEMS":
            self._hash(self._take_above_mark()[::2])
        elif name == "DICT":
            self._hash(self._take_above_mark()[::2])
            self.sizes.append(_ONE)
        elif name == "ADDITEMS":
            self._hash(self._take_above_mark())
        else:
            self._plain(code)

    def _plain(self, code: pickletools.OpcodeInfo) -> None:
        """Any other instruction, by what it takes from the stack and what it puts there."""
        takes = code.stack_before
        if pickletools.stackslice in takes:
            self._take_above_mark()
            takes = takes[: takes.index(pickletools.markobject)]
        self._take(len(takes))
        self.sizes += [_MARK if new is pickletools.markobject else _ONE for new in code.stack_after]

    def _top(self) -> _Size:
        return self.sizes[-1] if self.sizes else _ONE

    def _take(self, n: int) -> list[_Size]:
        taken = self.sizes[max(0, len(self.sizes) - n) :] if n else []
        del self.sizes[len(self.sizes) - len(taken) :]
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

    def _hash(self, keys: list[_Size]) -> list[_Size]:
        self.hashed += sum(size.parts for size in keys)
        if self.hashed > MOST_HASHED:
            raise ValueError("keys of too many parts")
        return keys
