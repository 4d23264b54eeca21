"""The interface of a feature layout, and raw arrays before checks and conversion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from foci.bags.bag import Unit
from foci.errors import BagError, EmptyBagError, NotFiniteError, shortened


@dataclass(frozen=True)
class ReadOptions:
    """Options for what a feature file does not tell.

    Attributes:
        mpp: Micrometres per level-0 pixel of the slide, to turn micrometres into pixels.
    """

    mpp: float | None = None


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
    """

    features: NDArray[Any]
    coords: NDArray[Any] | None = None
    unit: Unit = "px"
    origin: Literal["corner", "centre"] = "corner"
    patch_size: float | None = None
    encoder: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """How one family of feature files is recognised and read.

    Attributes:
        description: One line for people.
        suffixes: File endings it may have.
        matches: Whether a file with such an ending is of this layout, judged by content.
        read: Its content.
        sidecars: Other files that ``read`` looks at; the cache notices when they change.
    """

    description: str
    suffixes: tuple[str, ...]
    matches: Callable[[Path], bool]
    read: Callable[[Path, ReadOptions], Stored]
    sidecars: Callable[[Path], tuple[Path, ...]] = lambda path: ()


# Check features and coordinates, alike for all layouts.


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
        what = f"features have shape {_shape(array)}, not tiles x width"
        if array.ndim == 1:
            raise BagError(path, what, "one vector per slide cannot be audited; use tile features")
        raise BagError(path, what, "store one bag per file as [N, D] or [1, N, D]")
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
