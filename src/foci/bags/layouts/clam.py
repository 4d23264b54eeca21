"""CLAM: ``h5_files/<slide>.h5`` without attributes, or ``pt_files/<slide>.pt``.

The tile geometry is in a sibling folder, ``patches/<slide>.h5``, as attributes of ``coords``:
side at level 0 = ``patch_size`` x ``downsample`` (x ``custom_downsample`` in older files).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from foci.bags.layouts import hdf5
from foci.bags.layouts.layout import Layout, Stored, one_number
from foci.bags.layouts.tensor_file import load_array


def _matches_h5(path: Path) -> bool:
    """Anything with a plain ``features`` dataset: the most general layout, tried last."""
    with hdf5.open_file(path) as file:
        return isinstance(hdf5.item(file, "features"), h5py.Dataset)


def _read_h5(path: Path, mpp: float | None) -> Stored:
    """Coordinates are level-0 pixels, top-left."""
    with hdf5.open_file(path) as file:
        features = hdf5.numbers(hdf5.require(file, "features"), path)
        coords = hdf5.coordinates(file, path)
    return Stored(features=features, coords=coords, patch_size=_level0_patch_size(path))


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
    return Stored(features=features, coords=coords, patch_size=_level0_patch_size(twin))


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
    folders = (path.parent.parent / "patches", path.parent.parent.parent / "patches")
    return tuple(f for f in (folder / f"{path.stem}.h5" for folder in folders) if f.is_file())


def _twin(path: Path) -> Path | None:
    twin = path.parent.parent / "h5_files" / f"{path.stem}.h5"
    return twin if path.parent.name == "pt_files" and twin.is_file() else None


def _pt_sidecars(path: Path) -> tuple[Path, ...]:
    twin = _twin(path)
    return () if twin is None else (twin, *_patch_files(twin))


LAYOUT = Layout("CLAM .h5", hdf5.ENDINGS, _matches_h5, _read_h5, sidecars=_patch_files)
LAYOUT_PT = Layout("CLAM .pt", (".pt", ".pth"), lambda path: True, _read_pt, sidecars=_pt_sidecars)
