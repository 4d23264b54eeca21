"""Arrays in ``.pt`` files, read without executing anything in them."""

from __future__ import annotations

import pickle
import pickletools
import warnings
import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foci.bags.layouts.layout import check_floating, check_size, expecting
from foci.errors import BagError

if TYPE_CHECKING:
    from torch import Tensor

_PLAIN = "save the features as a plain tensor: torch.save(tensor, path)"
_PICKLES_OF_OLD_FILES = 4
"""Magic number, version, machine, content: what precedes the numbers in files before torch 1.6."""


def load_array(path: Path) -> NDArray[Any]:
    """A tensor or NumPy array saved by ``torch.save``; any other object is refused."""
    import torch

    fix = "extract or copy the file again"
    # torch raises whatever the damaged bytes lead to
    with expecting(path, (Exception,), lambda e: f"is not a readable .pt file ({e})", fix):
        _check_before(path)
        try:
            with torch.serialization.safe_globals(_numpy_globals()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # on the pickle's protocol, which changes nothing
                content = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError:
            what = "holds pickled objects, which FOCI does not execute"
            raise BagError(path, what, _PLAIN) from None
    if isinstance(content, torch.Tensor):
        return _dense(content, path)
    if isinstance(content, np.ndarray):
        check_size(content.shape, content.dtype.itemsize, path)
        return content
    what = f"holds a {type(content).__name__}, not one tensor of tile features"
    raise BagError(path, what, _PLAIN)


def _dense(tensor: Tensor, path: Path) -> NDArray[Any]:
    """A plain tensor as an array; half of the kinds of tensors that torch has are none."""
    import torch

    kinds = {
        "sparse": tensor.layout is not torch.strided,
        "quantised": tensor.is_quantized,
        "meta": tensor.is_meta,
        "nested": tensor.is_nested,
    }
    for kind, is_one in kinds.items():
        if is_one:
            what, fix = f"holds a {kind} tensor, not plain numbers", "save it as a plain tensor"
            raise BagError(path, what, f"{fix}: torch.save(tensor, path)")
    check_floating(tensor.dtype, tensor.is_floating_point(), path)
    check_size(tuple(tensor.shape), tensor.element_size(), path)
    array: NDArray[Any] = tensor.detach().to(torch.float32).resolve_neg().numpy()
    return array


def _numpy_globals() -> list[Any]:
    """The globals that a pickled NumPy array needs, and none that can run code."""
    from numpy._core.multiarray import _reconstruct, scalar

    kinds = {type(np.dtype(kind)) for kind in ("f2", "f4", "f8", "i4", "i8")}
    names = ("numpy.core.multiarray", "numpy._core.multiarray")
    return [
        np.ndarray,
        np.dtype,
        *kinds,
        *((_reconstruct, f"{module}._reconstruct") for module in names),
        *((scalar, f"{module}.scalar") for module in names),
    ]


def _check_before(path: Path) -> None:
    """Check sizes before torch allocates: records of the archive, parts of the pickle."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            file.seek(0)
            end = path.stat().st_size
            for _ in range(_PICKLES_OF_OLD_FILES):
                if file.tell() < end:
                    check_pickle(file)
            return
        with zipfile.ZipFile(file) as archive:
            for record in archive.infolist():
                check_size((record.file_size,), 1, path)
                if record.filename.endswith(".pkl"):
                    with archive.open(record) as content:
                        check_pickle(content)


# Bound the work that a pickle asks for. One of thirty bytes can describe a tuple that holds itself
# twice, thirty times over; hashing it takes hours, and one nested deep enough ends the process.

_MOST_PARTS = 100_000
_MOST_DEPTH = 100
_MOST_OTHER_KEYS = 10_000
"""Keys that are no text: numbers can be chosen so that each is compared with all others."""
_TEXT = (1, 1)
_KEYED = {"SETITEM", "SETITEMS", "DICT"}
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
    other_keys = 0
    for opcode, argument, _ in pickletools.genops(file):
        name = opcode.name
        top = (stack[-1] if stack else None) or (0, 0)
        if name in _PUT or name == "MEMOIZE":
            memo[len(memo) if name == "MEMOIZE" else int(argument or 0)] = top
            continue
        if name in _GET:
            stack.append(memo[int(argument or 0)])
            continue
        if name == "DUP":
            stack.append(top)
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
        if name in _KEYED:
            pairs = taken if name == "DICT" else taken[: len(taken) - 1]  # the dictionary is last
            other_keys += sum(key is not _TEXT for key in pairs[1::2])
        if parts > _MOST_PARTS or depth > _MOST_DEPTH or other_keys > _MOST_OTHER_KEYS:
            raise ValueError("a pickle of too many or too deeply nested parts")
        stack += [
            None
            if made is pickletools.markobject
            else _TEXT
            if "UNICODE" in name or "STRING" in name
            else (parts, depth)
            for made in opcode.stack_after
        ]


def _pop(stack: list[tuple[int, int] | None]) -> tuple[int, int] | None:
    if not stack:
        raise ValueError("a pickle that ends in the middle")
    return stack.pop()
