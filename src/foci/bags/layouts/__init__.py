"""Read the feature files of the common tools, recognised by content, into validated bags."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np

from foci.bags.bag import Bag, Provenance, spacing
from foci.bags.layouts import (
    arrays,
    clam,
    hdf5,
    slide2vec,
    slideflow,
    stamp,
    tables,
    trident,
    wsidata,
)
from foci.bags.layouts.layout import (
    Layout,
    Stored,
    check_file,
    ending,
    reading,
    tile_coords,
    tile_features,
)
from foci.errors import BagError
from foci.registry import Registry

__all__ = ["LAYOUTS", "Layout", "Stored", "candidates", "detect", "read_bag", "suffixes"]

LAYOUTS: Registry[Layout] = Registry("feature layout", "foci.layouts")
"""All layouts, in the order in which they are tried: of one ending, the most specific first.
Those of installed packages come last."""

LAYOUTS.add("stamp", stamp.LAYOUT)
LAYOUTS.add("trident", trident.LAYOUT)
LAYOUTS.add("uni2h", trident.LAYOUT_UNI2H)
LAYOUTS.add("clam", clam.LAYOUT)
LAYOUTS.add("slideflow", slideflow.LAYOUT)
LAYOUTS.add("slide2vec", slide2vec.LAYOUT)
LAYOUTS.add("clam-pt", clam.LAYOUT_PT)
LAYOUTS.add("npz", arrays.LAYOUT_NPZ)
LAYOUTS.add("npy", arrays.LAYOUT_NPY)
LAYOUTS.add("anndata", tables.LAYOUT_ANNDATA)
LAYOUTS.add("parquet", tables.LAYOUT_PARQUET)
LAYOUTS.add("wsidata", wsidata.LAYOUT)


_HDF5 = (*hdf5.ENDINGS, *tables.ANNDATA)


def read_bag(
    path: str | Path,
    *,
    slide_id: str | None = None,
    layout: str = "auto",
    mpp: float | None = None,
) -> Bag:
    """Read a feature file of any of the common tools.

    Args:
        path: ``.h5``, ``.pt``, ``.npz``, ``.npy``, ``.h5ad``, ``.parquet`` or ``.zarr``.
        slide_id: Defaults to the file name without its suffix.
        layout: ``"auto"`` to detect it by content, or the name of a layout.
        mpp: Micrometres per level-0 pixel, where the layout measures in micrometres.

    Raises:
        BagError: With the file, what is wrong with it, and what to do.
    """
    path = Path(path)
    with reading(path):
        check_file(path)
        # An HDF5 file stays open, so that no layout that is tried opens it again.
        with hdf5.open_file(path) if path.suffix.lower() in _HDF5 else nullcontext():
            name = detect(path) if layout == "auto" else layout
            stored = LAYOUTS[name].read(path, mpp)
        return canonical(stored, path, slide_id or path.stem, name)


def suffixes() -> frozenset[str]:
    """File suffixes of all layouts."""
    layouts = LAYOUTS.with_plugins().values()
    return frozenset(suffix for layout in layouts for suffix in layout.suffixes)


def candidates(path: Path) -> tuple[str, ...]:
    """Layouts that are possible for a file's suffix, most specific first."""
    layouts = LAYOUTS.with_plugins().items()
    return tuple(name for name, layout in layouts if ending(path) in layout.suffixes)


def detect(path: Path) -> str:
    """Detect the layout of a feature file by its content."""
    possible = candidates(path)
    if not possible:
        known = ", ".join(sorted(suffixes()))
        raise BagError(path, f"has the unknown ending {path.suffix!r}", f"known are {known}")
    for name in possible:
        if LAYOUTS[name].matches(path):
            return name
    with hdf5.open_file(path) as file:
        if "features" in list(file):
            hdf5.require(file, "features")
        found = ", ".join(sorted(file)) or "nothing"
    raise BagError(
        path,
        f"has neither 'features' nor 'feats' (it holds {found})",
        "this may be a coordinate file; point at the folder of tile features",
    )


def canonical(stored: Stored, path: Path, slide_id: str, layout: str) -> Bag:
    """Validate raw arrays and convert them to a :class:`Bag`."""
    features = tile_features(stored.features, path)
    coords = None if stored.coords is None else tile_coords(stored.coords, path)
    if coords is not None and len(coords) != len(features):
        raise BagError(
            path,
            f"has {len(coords)} coordinates for {len(features)} tiles",
            "features and coordinates come from different runs; extract the slide again",
        )
    size, inferred = stored.patch_size, False
    if size is None and coords is not None:
        size, inferred = spacing(coords), True
    if coords is not None and stored.origin == "centre" and size is not None:
        coords = coords - size / 2
    return Bag(
        slide_id=str(slide_id),
        features=features,
        coords=None if coords is None else np.rint(coords).astype(np.int64),
        unit=stored.unit,
        patch_size=None if size is None else round(size),
        patch_size_inferred=inferred and size is not None,
        provenance=Provenance(layout, path, stored.encoder, stored.notes, stored.misplaced),
    )
