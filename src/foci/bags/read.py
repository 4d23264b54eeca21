"""Read a feature file into a validated bag."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np

from foci.bags.bag import Bag, Provenance, spacing
from foci.bags.layouts import LAYOUTS, ReadOptions, Stored, detect
from foci.bags.layouts.hdf5 import HDF5_ENDINGS, check_file, open_hdf5, reading
from foci.bags.layouts.stored import tile_coords, tile_features
from foci.errors import BagError


def read_bag(
    path: str | Path,
    *,
    slide_id: str | None = None,
    layout: str = "auto",
    mpp: float | None = None,
) -> Bag:
    """Read a feature file of any of the common tools.

    Args:
        path: ``.h5``, ``.pt``, ``.npz`` or ``.npy``.
        slide_id: Defaults to the file name without its suffix.
        layout: ``"auto"`` to detect it by content, or the name of a layout.
        mpp: Micrometres per level-0 pixel, where the layout measures in micrometres.

    Raises:
        BagError: With the file, what is wrong with it, and what to do.
    """
    path = Path(path)
    with reading(path):
        check_file(path)
        with _opened(path):
            name = detect(path) if layout == "auto" else layout
            stored = LAYOUTS[name].read(path, ReadOptions(mpp=mpp))
        return canonical(stored, path, slide_id or path.stem, name)


def _opened(path: Path) -> AbstractContextManager[object]:
    """A file that ends like HDF5 stays open, so that no layout that is tried opens it again."""
    return open_hdf5(path) if path.suffix.lower() in HDF5_ENDINGS else nullcontext()


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
        provenance=Provenance(layout, path, stored.encoder, stored.notes),
    )
