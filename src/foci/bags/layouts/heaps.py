"""Check the heaps in which an HDF5 file keeps texts of variable length, before one is read.

The HDF5 library walks a heap object by object. In a damaged heap, an object of size 0 keeps it
walking on the spot forever, and nothing can interrupt it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import h5py

_SIGNATURE = b"GCOL\x01\x00\x00\x00"
_BLOCK = 2**22
_MOST_OBJECTS = 100_000
_LENGTHS_AT = {0: 14, 1: 14, 2: 10, 3: 10}
"""Where the superblock of each version says how wide lengths are."""


def check_heaps(file: h5py.File) -> None:
    """Refuse a file with a heap that the HDF5 library would walk forever.

    Raises:
        ValueError: If there is one.
    """
    facts = Path(file.filename).stat()
    if not _walkable(file.filename, facts.st_size, facts.st_mtime_ns, _Ranges(file)):
        raise ValueError("a damaged heap of texts")


class _Ranges:
    """The bytes of a file that are numbers of datasets; equal to any other, for the cache."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ranges)

    def __hash__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for name in self._file:
            if isinstance(self._file.get(name, getlink=True), h5py.HardLink):
                item = self._file[name]
                if isinstance(item, h5py.Dataset):
                    yield from _ranges(item)


@lru_cache(maxsize=4)
def _walkable(name: str, size: int, changed: int, numbers: Iterable[tuple[int, int]]) -> bool:
    handle = os.open(name, os.O_RDONLY)
    try:
        version = os.pread(handle, 1, 8)
        place = _LENGTHS_AT.get(version[0] if version else -1)
        width = os.pread(handle, 1, place)[0] if place is not None else 0
        if width not in (4, 8):
            return False
        heaps = (heap for gap in _gaps(numbers, size) for heap in _found(handle, *gap))
        return all(_ends(handle, heap, width) for heap in heaps)
    finally:
        os.close(handle)


def _ranges(dataset: h5py.Dataset) -> list[tuple[int, int]]:
    if dataset.chunks is None:
        start = dataset.id.get_offset()
        return [] if start is None else [(start, start + dataset.id.get_storage_size())]
    chunks: list[tuple[int, int]] = []
    if dataset.shape is not None and dataset.size:
        dataset.id.chunk_iter(
            lambda chunk: chunks.append((chunk.byte_offset, chunk.byte_offset + chunk.size))
        )
    return chunks


def _gaps(ranges: Iterable[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """What lies between ranges.

    >>> list(_gaps([(10, 20), (30, 40)], 50))
    [(0, 10), (20, 30), (40, 50)]
    """
    done = 0
    for start, end in sorted(ranges):
        if start > done:
            yield done, min(start, size)
        done = max(done, end)
    if done < size:
        yield done, size


def _found(handle: int, start: int, end: int) -> Iterator[int]:
    """Where heaps begin between two places."""
    while start < end:
        content = os.pread(handle, min(_BLOCK, end - start) + len(_SIGNATURE) - 1, start)
        place = content.find(_SIGNATURE)
        while place >= 0:
            yield start + place
            place = content.find(_SIGNATURE, place + 1)
        start += _BLOCK


def _ends(handle: int, heap: int, width: int) -> bool:
    """Whether a walk over the objects of a heap comes to its end."""
    kind = "<Q" if width == 8 else "<I"
    header = os.pread(handle, 8 + width, heap)
    if len(header) < 8 + width:
        return True  # cut off: the library says so
    end = heap + struct.unpack(kind, header[8:])[0]
    place = heap + 16  # both headers are filled up to 16 bytes
    for _ in range(_MOST_OBJECTS):
        entry = os.pread(handle, 8 + width, place)
        if place + 16 > end or len(entry) < 8 + width:
            return True
        (index,), (size,) = struct.unpack("<H", entry[:2]), struct.unpack(kind, entry[8:])
        step = 16 + -(-size // 8) * 8 if index else size
        if step == 0:
            return False
        place += step
    return False
