"""What all feature layouts share: their interface, and the checks of files and arrays.

A feature file may be damaged or hostile. Nothing in it is executed, sizes are checked before
anything is allocated, and whatever goes wrong costs this one slide, with one line that says why.
"""

from __future__ import annotations

import logging
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from foci.bags.bag import Unit
from foci.errors import BagError, EmptyBagError, FociError, NotFiniteError, shortened
from foci.files.bounds import read_json


@dataclass(frozen=True)
class Stored:
    """Raw arrays of one feature file.

    Attributes:
        features: ``[N, D]`` or ``[1, N, D]``, any float type.
        coords: ``[N, 2]`` or ``[1, N, 2]`` (x, y), or None.
        unit: Unit of ``coords`` and ``patch_size``.
        origin: Whether ``coords`` are a tile's top-left corner or its centre.
        patch_size: Side of a tile, or None to infer it from the spacing.
        encoder: Tile encoder if the file names it.
        notes: What was assumed, in plain sentences.
        misplaced: Why ``coords`` seem to be of another order than ``features``, or None.
    """

    features: NDArray[Any]
    coords: NDArray[Any] | None = None
    unit: Unit = "px"
    origin: Literal["corner", "centre"] = "corner"
    patch_size: float | None = None
    encoder: str | None = None
    notes: tuple[str, ...] = ()
    misplaced: str | None = None


@dataclass(frozen=True)
class Layout:
    """How one family of feature files is recognised and read.

    Attributes:
        description: One line for people.
        suffixes: File endings it may have.
        matches: Whether a file with such an ending is of this layout, judged by content.
        read: Its content; the second argument is the slide's resolution in micrometres per level-0
            pixel, or None, for layouts that measure in micrometres.
        sidecars: Other files that ``read`` looks at; the cache notices when they change.
    """

    description: str
    suffixes: tuple[str, ...]
    matches: Callable[[Path], bool]
    read: Callable[[Path, float | None], Stored]
    sidecars: Callable[[Path], tuple[Path, ...]] = lambda path: ()


# Files: of the right kind, within bounds, and with a reason where they cannot be read.

MAX_BAG_GB = "FOCI_MAX_BAG_GB"
"""Environment variable: gigabytes that one array of a feature file may have in memory."""

STORE = ".zarr"

_DEFAULT_BAG_GB = 2.0
"""325,000 tiles of 1,536 features in float32."""

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
    is logged with its traceback.
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


@contextmanager
def expecting(
    path: Path, damage: tuple[type[Exception], ...], why: Callable[[Exception], str], fix: str
) -> Iterator[None]:
    """Turn the exceptions that a library raises for damaged bytes into a :class:`BagError`.

    ``why`` says what is wrong with the file, and ``fix`` what to do about it.
    """
    check_file(path)
    try:
        yield
    except (FociError, MemoryError):
        raise
    except (FileNotFoundError, PermissionError) as error:
        raise unopened(path, error) from None
    except damage as error:
        raise BagError(path, why(error), fix) from error


def check_file(path: Path) -> None:
    """Refuse what is neither a plain file nor a Zarr store.

    Opening a pipe waits forever, and a device has no end.
    """
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except OSError as error:
        raise unopened(path, error) from None
    if kind != stat.S_IFREG and not (kind == stat.S_IFDIR and ending(path) == STORE):
        what = f"is {_KINDS.get(kind, 'something else')}, not a file"
        raise BagError(path, what, "put the feature file itself there")


def json_beside(path: Path, fix: str = "restore or delete it") -> Mapping[str, Any]:
    """The entries of a JSON file that a tool writes beside features; none where it is missing."""
    if not path.is_file():
        return {}
    try:
        content = read_json(path)
    except ValueError as error:
        raise BagError(path, f"is not JSON ({error})", fix) from error
    return content if isinstance(content, Mapping) else {}


def ending(path: Path) -> str:
    """What tells the layouts apart that a path may be of; a table in a Zarr store has the store's.

    >>> ending(Path("a/S.H5")), ending(Path("s.zarr")), ending(Path("s.zarr/tables/uni_tiles"))
    ('.h5', '.zarr', '.zarr')
    """
    if path.parent.name == "tables" and path.parent.parent.suffix.lower() == STORE:
        return STORE
    return path.suffix.lower()


def unopened(path: Path, error: OSError) -> BagError:
    """Why a file could not be opened, and what helps."""
    if isinstance(error, FileNotFoundError):
        return BagError(path, "does not exist", "check the feature folder")
    if isinstance(error, PermissionError):
        fix = "give yourself the right to read it (chmod u+r), or ask its owner"
        return BagError(path, "may not be read (permission denied)", fix)
    why = str(error) if error.errno is None else os.strerror(error.errno).lower()
    return BagError(path, f"cannot be read ({why})", "check the disk, or copy the file again")


def check_size(shape: tuple[int, ...], itemsize: int, path: Path) -> None:
    """Refuse an array that would be larger than the limit, before it is allocated.

    Numbers narrower than float32 count as float32, which is what they are converted to.

    >>> check_size((12_000, 1536), 2, Path("s.h5"))
    >>> check_size((10**9, 1024), 4, Path("s.h5"))
    Traceback (most recent call last):
    foci.errors.BagError: s.h5: claims 1000000000 x 1024 numbers, 4096.0 GB in memory where 2 GB ...
    """
    given, limit = os.environ.get(MAX_BAG_GB), _DEFAULT_BAG_GB
    if given:
        try:
            limit = float(given)
        except ValueError:
            limit = math.nan
        if not limit > 0:
            raise FociError(MAX_BAG_GB, f"is {given!r}", "give gigabytes, such as 4")
    size = math.prod(shape) * max(itemsize, 4)
    if size > limit * 1e9:
        needed = f"{' x '.join(map(str, shape))} numbers, {size / 1e9:.1f} GB in memory"
        fix = f"extract the slide again, or raise {MAX_BAG_GB} if it is right"
        raise BagError(path, f"claims {needed} where {limit:g} GB are allowed", fix)


# Arrays: of the right type and shape, finite, exact.

_EXACT = 2.0**53
"""Whole numbers up to it are exact in float64."""

_BLOCK = 2**22
"""Numbers that are checked at once, so that checking needs little memory of its own."""


def check_floating(dtype: object, floating: bool, path: Path) -> None:
    """Refuse features that are complex, integer, boolean or no numbers at all."""
    if not floating:
        name = str(dtype).removeprefix("torch.")
        raise BagError(path, f"features are {name}, not floating point", "extract it again")


def tile_features(array: NDArray[Any], path: Path) -> NDArray[np.float32]:
    """Features as ``[N, D]`` float32, all finite."""
    if array.ndim == 3 and len(array) == 1:
        array = array[0]
    if array.size == 0:
        raise EmptyBagError(path, "has no tiles", "no tissue was found on this slide; leave it out")
    if array.ndim != 2:
        fix = "store one bag per file as [N, D] or [1, N, D]"
        if array.ndim == 1:
            fix = "one vector per slide cannot be audited; use tile features"
        raise BagError(path, f"features have shape {_shape(array)}, not tiles x width", fix)
    check_floating(array.dtype, np.issubdtype(array.dtype, np.floating), path)
    with np.errstate(over="ignore"):
        features = np.ascontiguousarray(array, dtype=np.float32)
    bad = _not_finite(features)
    if len(bad):
        raise NotFiniteError(
            path,
            f"{len(bad)} of {len(features)} tiles hold NaN or Inf (first: tile {bad[0]})",
            "extract the slide again, in float32 if half precision overflowed",
        )
    return features


def _not_finite(features: NDArray[np.float32]) -> NDArray[np.int64]:
    """Tiles that hold NaN or Inf; looked for one by one only where the sum of squares is one."""
    rows = max(1, _BLOCK // features.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        found = [
            start + np.flatnonzero(~np.isfinite(block).all(axis=1))
            for start in range(0, len(features), rows)
            if not np.isfinite(np.vdot(block := features[start : start + rows], block))
        ]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def tile_coords(array: NDArray[Any], path: Path) -> NDArray[np.float64]:
    """Coordinates as ``[N, 2]`` float64, finite and small enough to be exact."""
    if array.ndim == 3 and len(array) == 1:
        array = array[0]
    if array.ndim != 2 or array.shape[1] != 2:
        what = f"coords have shape {_shape(array)}, not tiles x 2"
        raise BagError(path, what, "store x and y only")
    if array.dtype.kind not in "iuf":
        raise BagError(path, f"coordinates are {array.dtype}, not numbers", "store x and y only")
    with np.errstate(over="ignore"):
        coords = array.astype(np.float64)
    if not np.isfinite(coords).all():
        raise BagError(path, "coordinates hold NaN or Inf", "extract the slide again")
    if coords.size and np.abs(coords).max() > _EXACT:
        raise BagError(path, "coordinates are beyond 2^53", "extract the slide again")
    return coords


def one_number(value: Any, name: str, path: Path) -> float:
    """A size such as ``patch_size_level0``: a positive number, or an array of one and the same.

    >>> one_number([256, 256], "patch_size_level0", Path("s.h5"))
    256.0
    """
    array = np.asarray(value)
    if array.dtype.kind in "iuf" and array.size and (array == array.flat[0]).all():
        number = float(array.flat[0])
        if 0 < number <= _EXACT:
            return number
    what = f"{name} is {shortened(repr(value), 60)}, not one positive number"
    raise BagError(path, what, "extract the slide again")


def one_name(value: Any, name: str, path: Path) -> str | None:
    """A name such as that of the encoder: text, or None."""
    if value is None or isinstance(value, str):
        return value
    what = f"{name} is {shortened(repr(value), 60)}, not one name"
    raise BagError(path, what, "write it as text")


def _shape(array: NDArray[Any]) -> str:
    return " x ".join(map(str, array.shape)) or "of a single number"
