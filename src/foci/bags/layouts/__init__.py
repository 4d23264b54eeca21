"""Read the feature files of the common tools, recognised by content."""

from __future__ import annotations

from pathlib import Path

from foci.bags.layouts import arrays, clam, slideflow, stamp, trident, uni2h
from foci.bags.layouts.hdf5 import check_file, open_hdf5, require
from foci.bags.layouts.stored import Layout, ReadOptions, Stored
from foci.errors import BagError
from foci.registry import Registry

__all__ = ["LAYOUTS", "Layout", "ReadOptions", "Stored", "candidates", "detect", "suffixes"]

LAYOUTS: Registry[Layout] = Registry("feature layout")
"""All layouts, in the order in which they are tried: of one ending, the most specific first."""

LAYOUTS.add("stamp", stamp.LAYOUT)
LAYOUTS.add("trident", trident.LAYOUT)
LAYOUTS.add("uni2h", uni2h.LAYOUT)
LAYOUTS.add("clam", clam.LAYOUT)
LAYOUTS.add("slideflow", slideflow.LAYOUT)
LAYOUTS.add("clam-pt", clam.LAYOUT_PT)
LAYOUTS.add("npz", arrays.LAYOUT_NPZ)
LAYOUTS.add("npy", arrays.LAYOUT_NPY)


def suffixes() -> frozenset[str]:
    """File suffixes of all layouts."""
    return frozenset(ending for name in LAYOUTS for ending in LAYOUTS[name].suffixes)


def candidates(path: Path) -> tuple[str, ...]:
    """Layouts that are possible for a file's suffix, most specific first."""
    return tuple(name for name in LAYOUTS if path.suffix.lower() in LAYOUTS[name].suffixes)


def detect(path: Path) -> str:
    """Detect the layout of a feature file by its content."""
    check_file(path)
    possible = candidates(path)
    if not possible:
        known = ", ".join(sorted(suffixes()))
        raise BagError(path, f"has the unknown ending {path.suffix!r}", f"known are {known}")
    for name in possible:
        if LAYOUTS[name].matches(path):
            return name
    with open_hdf5(path) as file:
        if "features" in list(file):
            require(file, "features", path)
        found = ", ".join(sorted(file)) or "nothing"
    raise BagError(
        path,
        f"has neither 'features' nor 'feats' (it holds {found})",
        "this may be a coordinate file; point at the folder of tile features",
    )
