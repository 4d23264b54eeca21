"""TRIDENT: ``features`` and ``coords``, tile geometry as attributes of ``coords``."""

from __future__ import annotations

from pathlib import Path

from foci.bags.layouts.hdf5 import (
    item,
    name_attribute,
    number_attribute,
    numbers,
    open_hdf5,
    require,
)
from foci.bags.layouts.stored import Layout, ReadOptions, Stored


def _matches(path: Path) -> bool:
    """``coords`` carries ``patch_size_level0``."""
    with open_hdf5(path) as file:
        coords = item(file, "coords", path)
        return coords is not None and "patch_size_level0" in coords.attrs


def _read(path: Path, options: ReadOptions) -> Stored:
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


LAYOUT = Layout("TRIDENT .h5", (".h5", ".hdf5"), _matches, _read)
