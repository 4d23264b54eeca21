"""TRIDENT: ``features`` and ``coords``, tile geometry as attributes of ``coords``.

The published UNI2-h features are alike, without attributes and with a leading axis of one.
"""

from __future__ import annotations

from pathlib import Path

import h5py

from foci.bags.layouts.hdf5 import (
    HDF5_ENDINGS,
    coordinates,
    item,
    name_attribute,
    number_attribute,
    numbers,
    open_hdf5,
    require,
)
from foci.bags.layouts.layout import Layout, Stored


def _matches(path: Path) -> bool:
    """``coords`` carries ``patch_size_level0``."""
    with open_hdf5(path) as file:
        coords = item(file, "coords", path)
        return coords is not None and "patch_size_level0" in coords.attrs


def _read(path: Path, mpp: float | None) -> Stored:
    """Coordinates are level-0 pixels, top-left."""
    with open_hdf5(path) as file:
        features = require(file, "features", path)
        coords = require(file, "coords", path)
        return Stored(
            features=numbers(features, path),
            coords=numbers(coords, path),
            patch_size=number_attribute(coords, "patch_size_level0", path),
            encoder=name_attribute(features, "encoder", path),
        )


def _matches_uni2h(path: Path) -> bool:
    """``features`` has three axes."""
    with open_hdf5(path) as file:
        features = item(file, "features", path)
        return isinstance(features, h5py.Dataset) and len(features.shape or ()) == 3


def _read_uni2h(path: Path, mpp: float | None) -> Stored:
    """The patch size is not in the file and is inferred from the spacing of the tiles."""
    with open_hdf5(path) as file:
        features = numbers(require(file, "features", path), path)
        return Stored(features=features, coords=coordinates(file, path))


LAYOUT = Layout("TRIDENT .h5", HDF5_ENDINGS, _matches, _read)
LAYOUT_UNI2H = Layout("published UNI2-h .h5 (1, N, D)", HDF5_ENDINGS, _matches_uni2h, _read_uni2h)
