"""STAMP: ``feats``, coordinates in micrometres.

Three generations: 2.1 and later say ``tile_size_um`` and ``unit``; 2.0 says ``tile_size`` and
``unit``; historic files say nothing and count a tile of 256 micrometres as 224 units.
"""

from __future__ import annotations

from pathlib import Path

from foci.bags.bag import spacing
from foci.bags.layouts import hdf5
from foci.bags.layouts.layout import Layout, Stored, tile_coords
from foci.errors import BagError

_HISTORIC_UNITS, _HISTORIC_UM = 224.0, 256.0


def _matches(path: Path) -> bool:
    """The features are called ``feats``."""
    with hdf5.open_file(path) as file:
        return hdf5.item(file, "feats") is not None


def _read(path: Path, mpp: float | None) -> Stored:
    """Pixels need the slide's resolution; without it coordinates stay in micrometres."""
    with hdf5.open_file(path) as file:
        kind = hdf5.attribute(file, "feat_type")
        if kind is not None and str(kind) not in ("", "tile"):
            raise BagError(
                path, f"holds {kind} features, one vector for many tiles", "use tile features"
            )
        features = hdf5.numbers(hdf5.require(file, "feats"), path)
        stored = hdf5.coordinates(file, path)
        unit = hdf5.name_attribute(file, "unit", path)
        size = hdf5.number_attribute(file, "tile_size_um", path)
        size = hdf5.number_attribute(file, "tile_size", path) if size is None else size
        encoder = hdf5.name_attribute(file, "extractor", path)
    if stored is None:
        return Stored(features=features, encoder=encoder)

    coords = tile_coords(stored, path)
    notes: tuple[str, ...] = ()
    if unit is None:
        step = spacing(coords)
        if step is not None and abs(step - _HISTORIC_UNITS) < 1:
            coords, size = coords / _HISTORIC_UNITS * _HISTORIC_UM, _HISTORIC_UM
            notes = ("historic STAMP file: 224 units taken as 256 micrometres",)
        else:
            notes = ("no unit given: coordinates taken as micrometres",)
    elif unit != "um":
        raise BagError(path, f"has coordinates in {unit!r}", "write them in micrometres ('um')")
    if mpp is None:
        notes += ("slide resolution unknown (give mpp): coordinates stay in micrometres",)
        return Stored(features, coords, "um", "corner", size, encoder, notes)
    size = None if size is None else size / mpp
    return Stored(features, coords / mpp, "px", "corner", size, encoder, notes)


LAYOUT = Layout("STAMP .h5", hdf5.ENDINGS, _matches, _read)
