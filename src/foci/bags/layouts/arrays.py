"""NumPy files: a ``.npz`` per slide, or torchmil's ``features/`` and ``coords/`` of ``.npy``."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from foci.bags.layouts.layout import Layout, Stored, check_size, expecting, one_number
from foci.errors import BagError

_FEATURE_KEYS = ("features", "feats", "arr_0")
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_DAMAGE = (
    EOFError, KeyError, NotImplementedError, OSError, OverflowError, RecursionError, RuntimeError,
    SyntaxError, TypeError, ValueError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What NumPy and zipfile raise where bytes of a file are wrong."""


def _read_npz(path: Path, mpp: float | None) -> Stored:
    """Keys ``features`` (or ``feats``), optionally ``coords`` and ``patch_size_level0``."""
    arrays = load_npz(path, *_FEATURE_KEYS, also=("coords", "patch_size_level0"))
    size = arrays.get("patch_size_level0")
    return Stored(
        features=next(arrays[key] for key in _FEATURE_KEYS if key in arrays),
        coords=arrays.get("coords"),
        patch_size=None if size is None else one_number(size, "patch_size_level0", path),
    )


def _read_npy(path: Path, mpp: float | None) -> Stored:
    """Coordinates are grid indices: right for neighbours, not for drawing on a slide."""
    features = load_npy(path)
    (beside,) = _npy_sidecars(path) or (None,)
    if beside is None:
        return Stored(features=features)
    note = "coordinates are grid indices: they cannot be placed on a slide"
    return Stored(features, load_npy(beside), "grid", patch_size=1.0, notes=(note,))


def load_npy(path: Path) -> NDArray[Any]:
    """The array of a ``.npy`` file."""
    with _open(path) as file:
        return _array(file, path)


def load_npz(path: Path, *one_of: str, also: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    """The first array of ``one_of`` in a ``.npz`` file, and what it holds of ``also``.

    Others are never read.
    """
    with _open(path) as file, zipfile.ZipFile(file) as archive:
        held = {member.removesuffix(".npy"): member for member in archive.namelist()}
        first = next((name for name in one_of if name in held), None)
        if first is None:
            found = ", ".join(sorted(held)) or "nothing"
            what = f"has no array '{one_of[0]}' (it holds {found})"
            raise BagError(path, what, "rename the array")
        arrays = {}
        for name in (first, *also):
            if name in held:
                with archive.open(held[name]) as member:
                    arrays[name] = _array(member, path)
        return arrays


def _array(file: IO[bytes], path: Path) -> NDArray[Any]:
    """One array in NumPy's format; its header is read first, and nothing pickled at all."""
    start = file.tell()
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"format version {version[0]}.{version[1]}")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects")
    check_size(shape, dtype.itemsize, path)
    file.seek(start)
    return np.asarray(npy.read_array(file, allow_pickle=False))


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    fix = "write it again without pickle"
    with (
        expecting(path, _DAMAGE, lambda error: f"is not a readable NumPy file ({error})", fix),
        path.open("rb") as file,
    ):
        yield file


def _npy_sidecars(path: Path) -> tuple[Path, ...]:
    beside = path.parent.parent / "coords" / path.name
    return (beside,) if beside.is_file() and path.parent.name == "features" else ()


LAYOUT_NPZ = Layout("NumPy .npz", (".npz",), lambda path: True, _read_npz)
LAYOUT_NPY = Layout("NumPy .npy (torchmil)", (".npy",), lambda path: True, _read_npy, _npy_sidecars)
