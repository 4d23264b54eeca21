"""TRIDENT: ``features`` and ``coords``, tile geometry as attributes of ``coords``."""

from __future__ import annotations

from pathlib import Path

from foci.bags.layouts.hdf5 import attribute, open_hdf5, require
from foci.bags.layouts.stored import Layout, ReadOptions, Stored


def _matches(path: Path) -> bool:
    """``coords`` carries ``patch_size_level0``."""
    with open_hdf5(path) as file:
        return "coords" in file and "patch_size_level0" in file["coords"].attrs


def _read(path: Path, options: ReadOptions) -> Stored:
    """Coordinates are level-0 pixels, top-left."""
    with open_hdf5(path) as file:
        features = require(file, "features", path)
        coords = require(file, "coords", path)
        size = attribute(coords, "patch_size_level0")
        return Stored(
            features=features[()],
            coords=coords[()],
            patch_size=None if size is None else float(size),
            encoder=attribute(features, "encoder"),
        )


LAYOUT = Layout("TRIDENT .h5", (".h5", ".hdf5"), _matches, _read)
