"""CLAM: ``h5_files/<slide>.h5`` without attributes, or ``pt_files/<slide>.pt``.

The tile geometry is in a sibling folder, ``patches/<slide>.h5``, as attributes of ``coords``:
side at level 0 = ``patch_size`` x ``downsample`` (x ``custom_downsample`` in older files).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from foci.bags.layouts import hdf5
from foci.bags.layouts.layout import Layout, Stored, one_number
from foci.bags.layouts.tensor_file import load_array
from foci.errors import BagError

_COMPARED = 32
"""Tiles by which the order of two files is compared."""

_HALF_PRECISION = 1e-2
"""Largest difference of equal features, relative to the largest of the tile: one may be rounded."""


def _matches_h5(path: Path) -> bool:
    """Anything with a plain ``features`` dataset: the most general layout, tried last."""
    with hdf5.open_file(path) as file:
        return isinstance(hdf5.item(file, "features"), h5py.Dataset)


def _read_h5(path: Path, mpp: float | None) -> Stored:
    """Coordinates are level-0 pixels, top-left."""
    with hdf5.open_file(path) as file:
        features = hdf5.numbers(hdf5.require(file, "features"), path)
        coords = hdf5.coordinates(file, path)
    return _placed(features, coords, path)


def _read_pt(path: Path, mpp: float | None) -> Stored:
    """A bare tensor; coordinates come from the ``h5_files`` beside it where they fit."""
    features = load_array(path)
    twin = _twin(path)
    if twin is None:
        return Stored(features=features, notes=("no h5_files beside it: no coordinates",))
    with hdf5.open_file(twin) as file:
        coords = hdf5.coordinates(file, twin)
    if coords is not None and (found := _rows(coords)) != (wanted := _rows(features)):
        note = f"{twin.name} has {found} coordinates for {wanted} tiles: not used"
        return Stored(features=features, notes=(note,))
    if coords is not None and _in_another_order(features, twin):
        reason = f"{twin.name} holds the tiles of {path.name} in another order"
        note = f"{reason}: its coordinates are not used"
        return Stored(features=features, notes=(note,), misplaced=note)
    return _placed(features, coords, twin)


def _placed(features: NDArray[Any], coords: NDArray[Any] | None, path: Path) -> Stored:
    """With what ``patches`` says of the coordinates of an ``.h5``."""
    misplaced = None if coords is None else _unlike_patches(coords, path)
    return Stored(features, coords, patch_size=_level0_patch_size(path), misplaced=misplaced)


# Two files of CLAM can contradict each other: ``pt_files`` and ``h5_files`` hold the same features,
# ``h5_files`` and ``patches`` the same coordinates, each in one order.


def _in_another_order(features: NDArray[Any], twin: Path) -> bool:
    """Whether tiles of the ``.h5`` are found in the ``.pt``, but not in the same rows."""
    if features.ndim < 2 or features.dtype.kind != "f" or not features.size:
        return False
    own = features.reshape(-1, features.shape[-1]).astype(np.float32, copy=False)
    rows = np.unique(np.linspace(0, len(own) - 1, _COMPARED).astype(np.int64))
    try:
        with hdf5.open_file(twin) as file:
            dataset = hdf5.require(file, "features")
            if dataset.shape != own.shape:
                return False
            theirs = hdf5.numbers(dataset, twin, rows).astype(np.float32)
    except BagError:
        return False  # only its coordinates are needed
    tolerance = _HALF_PRECISION * np.abs(theirs).max(axis=1)
    moved = np.abs(own[rows] - theirs).max(axis=1) > tolerance
    found = [
        bool((np.abs(own - tile).max(axis=1) <= near).any())
        for tile, near in zip(theirs[moved], tolerance[moved], strict=True)
    ]
    return sum(found) > len(found) / 2  # else these are other features, and nothing is known


def _unlike_patches(coords: NDArray[Any], path: Path) -> str | None:
    """What to say where ``patches`` has the same coordinates in another order."""
    for source in _patch_files(path):
        try:
            with hdf5.open_file(source) as file:
                cut = hdf5.numbers(hdf5.require(file, "coords"), source)
        except BagError:
            continue
        same = cut.shape == coords.shape and cut.ndim == 2
        if not same or np.array_equal(cut, coords):
            continue
        if sorted(cut.tolist()) == sorted(coords.tolist()):
            return (
                f"{source.parent.name}/{source.name} lists the tiles of {path.name} in another "
                "order: tiles may be shown in the wrong places"
            )
    return None


def _rows(array: NDArray[Any]) -> int:
    return array.shape[-2] if array.ndim > 1 else array.size


def _level0_patch_size(path: Path) -> float | None:
    for source in _patch_files(path):
        with hdf5.open_file(source) as file:
            coords = hdf5.require(file, "coords")
            size = hdf5.number_attribute(coords, "patch_size", source)
            if size is None:
                continue
            # one of x and one of y, which differ in the last digits
            levels = hdf5.attribute(coords, "downsample")
            scale = 1.0 if levels is None else np.max(np.asarray(levels, dtype=float))
            custom = hdf5.attribute(coords, "custom_downsample")
            return (
                size
                * one_number(scale, "downsample", source)
                * one_number(custom or 1, "custom_downsample", source)
            )
    return None


def _patch_files(path: Path) -> tuple[Path, ...]:
    files = (folder / f"{path.stem}.h5" for folder in _patch_folders(path.parent))
    return tuple(file for file in files if file.is_file())


@lru_cache(maxsize=8)
def _patch_folders(features: Path) -> tuple[Path, ...]:
    """Looked for once, not for every slide."""
    folders = (features.parent / "patches", features.parent.parent / "patches")
    return tuple(folder for folder in folders if folder.is_dir())


def _twin(path: Path) -> Path | None:
    twin = path.parent.parent / "h5_files" / f"{path.stem}.h5"
    return twin if path.parent.name == "pt_files" and twin.is_file() else None


def _pt_sidecars(path: Path) -> tuple[Path, ...]:
    twin = _twin(path)
    return () if twin is None else (twin, *_patch_files(twin))


LAYOUT = Layout("CLAM .h5", hdf5.ENDINGS, _matches_h5, _read_h5, sidecars=_patch_files)
LAYOUT_PT = Layout("CLAM .pt", (".pt", ".pth"), lambda path: True, _read_pt, sidecars=_pt_sidecars)
