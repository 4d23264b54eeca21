"""Read a feature file into a validated bag."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foci.bags.bag import Bag, Provenance
from foci.bags.grid import spacing
from foci.bags.layouts import LAYOUTS, ReadOptions, Stored, detect
from foci.errors import BagError, EmptyBagError, NotFiniteError


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
    name = detect(path) if layout == "auto" else layout
    stored = LAYOUTS[name].read(path, ReadOptions(mpp=mpp))
    return canonical(stored, path, slide_id or path.stem, name)


def canonical(stored: Stored, path: Path, slide_id: str, layout: str) -> Bag:
    """Validate raw arrays and convert them to a :class:`Bag`."""
    features = _features(stored.features, path)
    coords = None if stored.coords is None else _coords(stored.coords, len(features), path)
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


def _features(array: NDArray[Any], path: Path) -> NDArray[np.float32]:
    if array.ndim == 3 and len(array) == 1:
        array = array[0]
    if array.size == 0:
        raise EmptyBagError(path, "has no tiles", "no tissue was found on this slide; leave it out")
    if array.ndim != 2:
        shape = " x ".join(map(str, array.shape))
        what = f"features have shape {shape}, not tiles x width"
        if array.ndim == 1:
            raise BagError(path, what, "one vector per slide cannot be audited; use tile features")
        raise BagError(path, what, "store one bag per file as [N, D] or [1, N, D]")
    if not np.issubdtype(array.dtype, np.floating):
        raise BagError(path, f"features are {array.dtype}, not floating point", "extract it again")
    features = np.ascontiguousarray(array, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(bad):
        raise NotFiniteError(
            path,
            f"{len(bad)} of {len(features)} tiles hold NaN or Inf (first: tile {bad[0]})",
            "extract the slide again, in float32 if half precision overflowed",
        )
    return features


def _coords(array: NDArray[Any], n_tiles: int, path: Path) -> NDArray[np.float64]:
    if array.ndim == 3 and len(array) == 1:
        array = array[0]
    if array.ndim != 2 or array.shape[1] != 2:
        shape = " x ".join(map(str, array.shape))
        raise BagError(path, f"coords have shape {shape}, not tiles x 2", "store x and y only")
    if len(array) != n_tiles:
        raise BagError(
            path,
            f"has {len(array)} coordinates for {n_tiles} tiles",
            "features and coordinates come from different runs; extract the slide again",
        )
    coords = array.astype(np.float64)
    if not np.isfinite(coords).all():
        raise BagError(path, "coordinates hold NaN or Inf", "extract the slide again")
    return coords
