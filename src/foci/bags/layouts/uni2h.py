"""The published UNI2-h features: like TRIDENT's, with a leading axis of one."""

from __future__ import annotations

from pathlib import Path

import h5py

from foci.bags.layouts.hdf5 import coordinates, item, numbers, open_hdf5, require
from foci.bags.layouts.stored import Layout, ReadOptions, Stored


def _matches(path: Path) -> bool:
    """``features`` has three axes."""
    with open_hdf5(path) as file:
        features = item(file, "features", path)
        return isinstance(features, h5py.Dataset) and len(features.shape or ()) == 3


def _read(path: Path, options: ReadOptions) -> Stored:
    """The patch size is not in the file and is inferred from the spacing of the tiles."""
    with open_hdf5(path) as file:
        features = numbers(require(file, "features", path), path)
        return Stored(features=features, coords=coordinates(file, path))


LAYOUT = Layout("published UNI2-h .h5 (1, N, D)", (".h5", ".hdf5"), _matches, _read)
