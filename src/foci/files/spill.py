"""Arrays that are too large to stay in memory: they lie in a temporary file and are read in parts.

A file that is mapped into memory would count as memory, so its parts are read.
"""

from __future__ import annotations

import math
import tempfile
import threading
import weakref
from collections.abc import Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

LARGE = 2**22
"""Bytes above which :func:`spilled` writes an array to a file."""


class Spilled:
    """An array in a temporary file that is gone with the object; some of its rows can be read."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.shape, self.dtype, self.nbytes = array.shape, array.dtype, array.nbytes
        self._file, self._one = tempfile.TemporaryFile(prefix="foci-"), threading.Lock()  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        for row in array:
            self._file.write(np.ascontiguousarray(row).reshape(-1).view(np.uint8).data)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    @overload
    def __getitem__(self, rows: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, rows: slice | NDArray[np.int64]) -> NDArray[Any]: ...
    def __getitem__(self, rows: int | slice | NDArray[np.int64]) -> NDArray[Any]:
        """Rows as an array of their own."""
        if isinstance(rows, np.ndarray):
            return np.stack([self[row] for row in rows.tolist()])
        if not isinstance(rows, slice):
            row = range(len(self))[rows]
            found: NDArray[Any] = self[row : row + 1][0]
            return found
        wanted = range(*rows.indices(len(self)))
        found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        with self._one:
            self._file.seek(wanted.start * math.prod(self.shape[1:]) * self.dtype.itemsize)
            self._file.readinto(found.reshape(-1).view(np.uint8).data)
        return found


def spilled(array: NDArray[Any]) -> NDArray[Any] | Spilled:
    """A large array in a file; a small one as it is."""
    return Spilled(array) if array.nbytes > LARGE else array
