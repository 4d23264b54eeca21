"""Write feature files in TRIDENT's layout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray


def write_trident(
    path: Path,
    features: NDArray[Any],
    coords: NDArray[Any],
    *,
    slide_id: str,
    encoder: str,
    geometry: Mapping[str, Any],
) -> None:
    """Write ``features`` and ``coords``; the geometry becomes attributes of ``coords``.

    Args:
        path: File to write.
        features: ``[N, D]``.
        coords: ``[N, 2]`` top-left corners in level-0 pixels.
        slide_id: The slide.
        encoder: Tile encoder.
        geometry: Of :func:`tile_geometry`, and whatever else belongs to the tiles.
    """
    origin = {"name": slide_id, "savetodir": "."}
    with h5py.File(path, "w", locking=False) as file:
        _write_rows(file, "features", features, {**origin, "encoder": encoder})
        _write_rows(file, "coords", coords, {**origin, **geometry})


def tile_geometry(
    *,
    tile: int,
    side: int,
    magnification: int,
    target_magnification: int,
    size: tuple[int, int],
) -> dict[str, int]:
    """Attributes of ``coords`` that TRIDENT writes.

    Args:
        tile: Side of a tile in pixels at the target magnification.
        side: The same in level-0 pixels.
        magnification: Of level 0.
        target_magnification: Of the tiles.
        size: Width and height of level 0.
    """
    return {
        "patch_size": tile,
        "patch_size_level0": side,
        "level0_magnification": magnification,
        "target_magnification": target_magnification,
        "overlap": 0,
        "level0_width": size[0],
        "level0_height": size[1],
    }


def _write_rows(file: h5py.File, name: str, rows: NDArray[Any], facts: Mapping[str, Any]) -> None:
    width = rows.shape[1]
    dataset = file.create_dataset(name, data=rows, chunks=(1, width), maxshape=(None, width))
    dataset.attrs.update(facts)
