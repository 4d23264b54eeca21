"""Open HDF5 files, with one-line errors for truncated or foreign ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from foci.errors import BagError

_MAGIC = b"\x89HDF\r\n\x1a\n"


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file read-only, without the locks that network file systems refuse.

    Reading is part of the block, so an error inside it (a damaged chunk) is reported alike.
    """
    try:
        with h5py.File(path, "r", locking=False) as file:
            yield file
    except FileNotFoundError:
        raise BagError(path, "does not exist", "check the feature folder") from None
    except (OSError, RuntimeError) as error:
        raise BagError(path, _why(path, error), "extract or copy the file again") from error


def _why(path: Path, error: Exception) -> str:
    with path.open("rb") as handle:
        head = handle.read(len(_MAGIC))
    if head != _MAGIC:
        return "is empty" if not head else "is not an HDF5 file"
    if "truncated" in str(error):
        return "is truncated (an extraction or a copy was cut off)"
    return f"cannot be read ({error})"


def require(file: h5py.File, name: str, path: Path) -> h5py.Dataset:
    """A dataset by name; the error lists what the file has instead."""
    item = file.get(name)
    if isinstance(item, h5py.Dataset):
        return item
    if isinstance(item, h5py.Group):
        inside = ", ".join(sorted(item)) or "nothing"
        raise BagError(
            path,
            f"'{name}' is a group (it holds {inside})",
            "write the features of one encoder as a plain dataset",
        )
    found = ", ".join(sorted(file)) or "nothing"
    raise BagError(path, f"has no dataset '{name}' (it holds {found})", "check which tool wrote it")


def attribute(item: h5py.HLObject, name: str) -> Any:
    """An attribute as a plain Python value; None if it is absent or the string 'None'."""
    value = item.attrs.get(name)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if value is None or (isinstance(value, str) and value == "None"):
        return None
    return value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
