"""Open HDF5 files, with one-line errors for truncated, damaged or foreign ones.

An HDF5 file can name other files: by an external link, by external storage or as a virtual
dataset. None of them is followed, so that a feature file shows nothing but what it holds itself.
"""

from __future__ import annotations

import math
import os
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from foci.bags.layouts.layout import check_size, expecting, one_name, one_number
from foci.errors import BagError

ENDINGS = (".h5", ".hdf5")
_MAGIC = b"\x89HDF\r\n\x1a\n"
_MOST_LINKS = 16
_PLAIN_TYPES = (h5py.h5t.INTEGER, h5py.h5t.FLOAT, h5py.h5t.STRING)
"""Of attributes. Others mean nothing here, and damaged ones of variable length end the process
inside the HDF5 library."""
_MOST_VALUES = 1000
_OPEN = threading.local()
"""``files``: open files by path; ``sound``: the file whose heaps were checked last."""
_DAMAGE = (KeyError, OSError, OverflowError, RuntimeError, TypeError, ValueError)
"""What h5py raises where bytes of a file are wrong."""


@contextmanager
def open_file(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file read-only, without the locks that network file systems refuse.

    Reading is part of the block, so an error inside it (a damaged chunk) is reported alike. Within
    the block the same path is not opened again: a layout is detected and read from one open file.
    """
    before: dict[Path, h5py.File] = getattr(_OPEN, "files", {})
    if path in before:
        yield before[path]
        return

    def why(error: Exception) -> str:
        with path.open("rb") as handle:
            head = handle.read(len(_MAGIC))
        if head != _MAGIC:
            return "is empty" if not head else "is not an HDF5 file"
        if "truncated" in str(error):
            return "is truncated (an extraction or a copy was cut off)"
        return f"cannot be read ({error})"

    with (
        expecting(path, _DAMAGE, why, "extract or copy the file again"),
        h5py.File(path, "r", locking=False) as file,
    ):
        _OPEN.files = {**before, path: file}
        try:
            yield file
        finally:
            _OPEN.files = before


def item(file: h5py.File, name: str) -> h5py.Dataset | h5py.Group | None:
    """What a file holds under a name, or None; links to other files are refused, not followed."""
    for _ in range(_MOST_LINKS):
        place, target = "", None
        parts = [part for part in name.split("/") if part]
        for number, part in enumerate(parts):
            place = f"{place}/{part}"
            link = file.get(place, getlink=True)
            if link is None:
                return None
            if isinstance(link, h5py.ExternalLink):
                what = f"'{place[1:]}' is a link to another file, which FOCI does not follow"
                raise BagError(file.filename, what, "copy the data into the file (h5copy)")
            if isinstance(link, h5py.SoftLink):
                start = "" if link.path.startswith("/") else place.rpartition("/")[0]
                target = "/".join([start, link.path, *parts[number + 1 :]])
                break
        if target is None:
            return file[name]
        name = target
    what = f"'{name}' is a chain of links without end"
    raise BagError(file.filename, what, "write a plain dataset")


def require(file: h5py.File, name: str) -> h5py.Dataset:
    """A dataset by name; the error lists what the file has instead."""
    found = item(file, name)
    if isinstance(found, h5py.Dataset):
        return found
    if isinstance(found, h5py.Group):
        inside = ", ".join(sorted(found)) or "nothing"
        fix = "write the features of one encoder as a plain dataset"
        raise BagError(file.filename, f"'{name}' is a group (it holds {inside})", fix)
    what = f"has no dataset '{name}' (it holds {', '.join(sorted(file)) or 'nothing'})"
    raise BagError(file.filename, what, "check which tool wrote it")


def numbers(
    dataset: h5py.Dataset, path: Path, rows: NDArray[np.int64] | None = None
) -> NDArray[Any]:
    """The content of a dataset, or some rows; it is in the file itself and not too large."""
    name = dataset.name.rpartition("/")[2]
    if dataset.external or dataset.is_virtual:
        what = f"'{name}' keeps its numbers in another file, which FOCI does not follow"
        raise BagError(path, what, "write the numbers into the file itself (h5repack)")
    if dataset.shape is None:
        raise BagError(path, f"'{name}' is a dataset without a shape", "extract the slide again")
    if dataset.dtype.kind not in "biufc":
        what = f"'{name}' holds {dataset.dtype}, not numbers"
        raise BagError(path, what, "extract the slide again")
    check_size(dataset.shape, dataset.dtype.itemsize, path)
    if dataset.chunks is not None:
        check_size(dataset.chunks, dataset.dtype.itemsize, path)
    if dataset.size and not dataset.id.get_storage_size():
        what = f"'{name}' was created but never written"
        raise BagError(path, what, "the extraction was cut off; extract the slide again")
    array: NDArray[Any] = dataset[() if rows is None else rows]
    return array


def coordinates(file: h5py.File, path: Path) -> NDArray[Any] | None:
    """The dataset ``coords``, or None if there is none."""
    return None if item(file, "coords") is None else numbers(require(file, "coords"), path)


def attribute(holder: h5py.HLObject, name: str) -> Any:
    """An attribute as a plain Python value; None if it is absent or the string 'None'."""
    if name not in holder.attrs:
        return None
    stored = h5py.h5a.open(holder.id, name.encode())
    kind = stored.get_type()
    plain = kind.get_class() in _PLAIN_TYPES
    if not plain or math.prod(stored.shape or ()) > _MOST_VALUES:
        raise ValueError(f"attribute {name} is neither numbers nor text")
    if kind.get_class() == h5py.h5t.STRING and kind.is_variable_str():
        check_heaps(holder.file)
    value = holder.attrs[name]
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if value is None or (isinstance(value, str) and value == "None"):
        return None
    return value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value


def number_attribute(holder: h5py.HLObject, name: str, path: Path) -> float | None:
    """An attribute that is a positive number, or None if it is absent."""
    value = attribute(holder, name)
    return None if value is None else one_number(value, name, path)


def name_attribute(holder: h5py.HLObject, name: str, path: Path) -> str | None:
    """An attribute that is text, or None if it is absent."""
    return one_name(attribute(holder, name), name, path)


# Heaps, in which an HDF5 file keeps texts of variable length. The library walks a heap object by
# object: in a damaged one, an object of size 0 keeps it walking on the spot forever, and nothing
# can interrupt it. So every heap is walked here before a text is read.

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
    key = (file.filename, facts.st_size, facts.st_mtime_ns)
    if getattr(_OPEN, "sound", None) == key:
        return
    handle = os.open(file.filename, os.O_RDONLY)
    try:
        version = os.pread(handle, 1, 8)
        place = _LENGTHS_AT.get(version[0] if version else -1)
        width = os.pread(handle, 1, place)[0] if place is not None else 0
        gaps = _gaps(_ranges(file), facts.st_size)
        heaps = (heap for gap in gaps for heap in _heaps_between(handle, *gap))
        if width not in (4, 8) or not all(_ends(handle, heap, width) for heap in heaps):
            raise ValueError("a damaged heap of texts")
    finally:
        os.close(handle)
    _OPEN.sound = key


def _ranges(file: h5py.File) -> Iterator[tuple[int, int]]:
    """The bytes of a file that are numbers of datasets, where no heap can be."""
    for name in file:
        if not isinstance(file.get(name, getlink=True), h5py.HardLink):
            continue
        dataset = file[name]
        if not isinstance(dataset, h5py.Dataset):
            continue
        if dataset.chunks is None:
            start = dataset.id.get_offset()
            if start is not None:
                yield start, start + dataset.id.get_storage_size()
        elif dataset.shape is not None and dataset.size:
            chunks: list[tuple[int, int]] = []
            dataset.id.chunk_iter(
                lambda chunk, chunks=chunks: chunks.append(
                    (chunk.byte_offset, chunk.byte_offset + chunk.size)
                )
            )
            yield from chunks


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


def _heaps_between(handle: int, start: int, end: int) -> Iterator[int]:
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
