"""Open HDF5 files, with one-line errors for truncated, damaged or foreign ones.

An HDF5 file can name other files: by an external link, by external storage or as a virtual
dataset. None of them is followed, so that a feature file shows nothing but what it holds itself.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from foci.bags.layouts.boundary import check_file, check_size, unopened
from foci.bags.layouts.heaps import check_heaps
from foci.bags.layouts.numbers import one_name, one_number
from foci.errors import BagError, FociError

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
