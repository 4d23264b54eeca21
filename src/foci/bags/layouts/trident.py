"""TRIDENT: ``features`` and ``coords``, tile geometry as attributes of ``coords``.

The published UNI2-h features are alike, without attributes and with a leading axis of one.
"""

from __future__ import annotations

from pathlib import Path

import h5py

from foci.bags.layouts import hdf5
from foci.bags.layouts.layout import Layout, Stored


def _matches(path: Path) -> bool:
    """``coords`` carries ``patch_size_level0``."""
    with hdf5.open_file(path) as file:
        coords = hdf5.item(file, "coords")
        return coords is not None and "patch_size_level0" in coords.attrs


def _read(path: Path, mpp: float | None) -> Stored:
    """Coordinates are level-0 pixels, top-left."""
    with hdf5.open_file(path) as file:
        features, coords = hdf5.require(file, "features"), hdf5.require(file, "coords")
        return Stored(
            features=hdf5.numbers(features, path),
            coords=hdf5.numbers(coords, path),
            patch_size=hdf5.number_attribute(coords, "patch_size_level0", path),
            encoder=hdf5.name_attribute(features, "encoder", path),
        )


def _matches_uni2h(path: Path) -> bool:
    """``features`` has three axes."""
    with hdf5.open_file(path) as file:
        features = hdf5.item(file, "features")
        return isinstance(features, h5py.Dataset) and len(features.shape or ()) == 3


def _read_uni2h(path: Path, mpp: float | None) -> Stored:
    """The patch size is not in the file and is inferred from the spacing of the tiles."""
    with hdf5.open_file(path) as file:
        features = hdf5.numbers(hdf5.require(file, "features"), path)
        return Stored(features=features, coords=hdf5.coordinates(file, path))


LAYOUT = Layout("TRIDENT .h5", hdf5.ENDINGS, _matches, _read)
LAYOUT_UNI2H = Layout("published UNI2-h .h5 (1, N, D)", hdf5.ENDINGS, _matches_uni2h, _read_uni2h)
