"""Bound the work that a pickle asks for, before anything unpickles it.

A pickle of thirty bytes can describe a tuple that holds itself twice, thirty times over; hashing it
takes hours, and one nested deep enough ends the process. Here the instructions are only counted.
"""

from __future__ import annotations

import pickletools
from typing import IO

_MOST_PARTS = 100_000
_MOST_DEPTH = 100
_PUT = {"PUT", "BINPUT", "LONG_BINPUT"}
_GET = {"GET", "BINGET", "LONG_BINGET"}


def check_pickle(file: IO[bytes]) -> None:
    r"""Refuse a pickle whose value, written out, has too many parts or is nested too deeply.

    Reads up to the end of the pickle. The value of every instruction is replaced by two numbers:
    of how many parts it consists, with repetitions, and how deep they are nested.

    Raises:
        ValueError: If a limit is passed, or the file is no pickle.

    >>> import io
    >>> doubled = b"N" + b"2\x86" * 30 + b"."
    >>> len(doubled), check_pickle(io.BytesIO(doubled))
    Traceback (most recent call last):
    ValueError: a pickle of too many or too deeply nested parts
    """
    stack: list[tuple[int, int] | None] = []  # None marks the beginning of a slice
    memo: dict[int, tuple[int, int]] = {}
    for opcode, argument, _ in pickletools.genops(file):
        name = opcode.name
        if name in _PUT or name == "MEMOIZE":
            memo[len(memo) if name == "MEMOIZE" else int(argument or 0)] = _top(stack)
            continue
        if name in _GET:
            stack.append(memo[int(argument or 0)])
            continue
        if name == "DUP":
            stack.append(_top(stack))
            continue
        taken: list[tuple[int, int]] = []
        for wanted in reversed(opcode.stack_before):
            if wanted is pickletools.stackslice:
                continue
            if wanted is pickletools.markobject:
                while (part := _pop(stack)) is not None:
                    taken.append(part)
            elif (part := _pop(stack)) is not None:
                taken.append(part)
        parts = 1 + sum(part for part, _ in taken)
        depth = 1 + max((depth for _, depth in taken), default=0)
        if parts > _MOST_PARTS or depth > _MOST_DEPTH:
            raise ValueError("a pickle of too many or too deeply nested parts")
        stack += [
            None if made is pickletools.markobject else (parts, depth)
            for made in opcode.stack_after
        ]


def _top(stack: list[tuple[int, int] | None]) -> tuple[int, int]:
    return (stack[-1] if stack else None) or (0, 0)


def _pop(stack: list[tuple[int, int] | None]) -> tuple[int, int] | None:
    if not stack:
        raise ValueError("a pickle that ends in the middle")
    return stack.pop()
