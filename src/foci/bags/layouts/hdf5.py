"""Open HDF5 files, with one-line errors for truncated, damaged or foreign ones.

An HDF5 file can name other files: by an external link, by external storage or as a virtual
dataset. None of them is followed, so that a feature file shows nothing but what it holds itself.
"""

from __future__ import annotations

import logging
import math
import os
import stat
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from foci.bags.layouts.stored import one_name, one_number
from foci.errors import BagError, FociError
from foci.files.bounds import BAG_GB, excess

# Check the heaps in which an HDF5 file keeps texts of variable length, before one is read.
#
# The HDF5 library walks a heap object by object. In a damaged heap, an object of size 0 keeps it
# walking on the spot forever, and nothing can interrupt it.


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


# The boundary around reading a bag: whatever goes wrong inside costs this one slide.


_LOG = logging.getLogger(__name__)
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any exception while a feature file is read into a :class:`BagError`.

    An exception of a type that no reader expects is a defect of FOCI or a new kind of damage: it
    goes to the log with its traceback (logger ``foci.bags.layouts.hdf5``).
    """
    try:
        yield
    except FociError:
        raise
    except OSError as error:
        raise unopened(path, error) from error
    except MemoryError as error:
        fix = "free some memory or lower --n-cap; if the file is damaged, extract the slide again"
        raise BagError(path, "needs more memory than there is", fix) from error
    except Exception as error:
        _LOG.exception("%s cannot be read", path)
        what = f"cannot be read ({type(error).__name__}: {error})"
        fix = "extract or copy the file again; FOCI_LOG=FILE keeps the traceback"
        raise BagError(path, what, fix) from error


def check_file(path: Path) -> None:
    """Refuse what is not a plain file: opening a pipe waits forever, a device has no end."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except OSError as error:
        raise unopened(path, error) from None
    if kind != stat.S_IFREG:
        what = f"is {_KINDS.get(kind, 'something else')}, not a file"
        raise BagError(path, what, "put the feature file itself there")


def check_size(shape: tuple[int, ...], itemsize: int, path: Path) -> None:
    """Refuse an array that would be larger than the limit, before it is allocated."""
    if what := excess(shape, itemsize):
        raise BagError(path, what, f"extract the slide again, or raise {BAG_GB} if it is right")


def unopened(path: Path, error: OSError) -> BagError:
    """Why a file could not be opened, and what helps."""
    if isinstance(error, FileNotFoundError):
        return BagError(path, "does not exist", "check the feature folder")
    if isinstance(error, PermissionError):
        fix = "give yourself the right to read it (chmod u+r), or ask its owner"
        return BagError(path, "may not be read (permission denied)", fix)
    why = str(error) if error.errno is None else os.strerror(error.errno).lower()
    return BagError(path, f"cannot be read ({why})", "check the disk, or copy the file again")


HDF5_ENDINGS = (".h5", ".hdf5")
_MAGIC = b"\x89HDF\r\n\x1a\n"
_MOST_LINKS = 16
_PLAIN_TYPES = (h5py.h5t.INTEGER, h5py.h5t.FLOAT, h5py.h5t.STRING)
"""Of attributes. Others mean nothing here, and damaged ones of variable length end the process
inside the HDF5 library."""
_MOST_VALUES = 1000
_OPEN = threading.local()
_DAMAGE = (KeyError, OSError, OverflowError, RuntimeError, TypeError, ValueError)
"""What h5py raises where bytes of a file are wrong."""


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file read-only, without the locks that network file systems refuse.

    Reading is part of the block, so an error inside it (a damaged chunk) is reported alike. Within
    the block the same path is not opened again: a layout is detected and read from one open file.
    """
    if (already := getattr(_OPEN, "files", {}).get(path)) is not None:
        yield already
        return
    check_file(path)
    try:
        with h5py.File(path, "r", locking=False) as file, _remembered(path, file):
            yield file
    except FociError:
        raise
    except (FileNotFoundError, PermissionError) as error:
        raise unopened(path, error) from None
    except _DAMAGE as error:
        raise BagError(path, _why(path, error), "extract or copy the file again") from error


@contextmanager
def _remembered(path: Path, file: h5py.File) -> Iterator[None]:
    """Hand out the open file of a path, in this thread, until the block ends."""
    before = getattr(_OPEN, "files", {})
    _OPEN.files = {**before, path: file}
    try:
        yield
    finally:
        _OPEN.files = before


def _why(path: Path, error: Exception) -> str:
    with path.open("rb") as handle:
        head = handle.read(len(_MAGIC))
    if head != _MAGIC:
        return "is empty" if not head else "is not an HDF5 file"
    if "truncated" in str(error):
        return "is truncated (an extraction or a copy was cut off)"
    return f"cannot be read ({error})"


def item(file: h5py.File, name: str, path: Path) -> h5py.Dataset | h5py.Group | None:
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
                raise BagError(path, what, "copy the data into the file (h5copy)")
            if isinstance(link, h5py.SoftLink):
                start = "" if link.path.startswith("/") else place.rpartition("/")[0]
                target = "/".join([start, link.path, *parts[number + 1 :]])
                break
        if target is None:
            return file[name]
        name = target
    raise BagError(path, f"'{name}' is a chain of links without end", "write a plain dataset")


def require(file: h5py.File, name: str, path: Path) -> h5py.Dataset:
    """A dataset by name; the error lists what the file has instead."""
    found = item(file, name, path)
    if isinstance(found, h5py.Dataset):
        return found
    if isinstance(found, h5py.Group):
        inside = ", ".join(sorted(found)) or "nothing"
        raise BagError(
            path,
            f"'{name}' is a group (it holds {inside})",
            "write the features of one encoder as a plain dataset",
        )
    held = ", ".join(sorted(file)) or "nothing"
    raise BagError(path, f"has no dataset '{name}' (it holds {held})", "check which tool wrote it")


def numbers(dataset: h5py.Dataset, path: Path) -> NDArray[Any]:
    """The content of a dataset, if the file itself holds it and it is not too large."""
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
    array: NDArray[Any] = dataset[()]
    return array


def coordinates(file: h5py.File, path: Path) -> NDArray[Any] | None:
    """The dataset ``coords``, or None if there is none."""
    return (
        None if item(file, "coords", path) is None else numbers(require(file, "coords", path), path)
    )


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
