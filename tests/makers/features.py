"""Writes feature files the way the common tools do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray

UUID = "D4FF32CD-38CF-40EA-8213-45C2B100AC01"


def features(n: int = 12, d: int = 6, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def grid(n: int = 12, step: int = 256, columns: int = 4, origin: tuple[int, int] = (1000, 2000)):
    index = np.arange(n)
    return np.stack([origin[0] + index % columns * step, origin[1] + index // columns * step], 1)


def contour_grid(step: int = 512) -> NDArray[np.int64]:
    """Two tissue pieces, each with a grid of its own origin, as CLAM lays them out."""
    return np.concatenate(
        [grid(8, step, 4, (23480, 34386)), grid(4, step, 2, (27173, 21393))]
    ).astype(np.int64)


def trident(path: Path, x: NDArray[Any], coords: NDArray[Any], size: int = 256) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        chunks = (1, x.shape[1]) if x.ndim == 2 and len(x) else None
        file.create_dataset("features", data=x, chunks=chunks).attrs["encoder"] = "uni_v2"
        attrs = file.create_dataset("coords", data=coords.astype(np.int64)).attrs
        attrs["patch_size"] = 256
        attrs["patch_size_level0"] = size
        attrs["level0_magnification"] = 40
        attrs["target_magnification"] = 20
        attrs["overlap"] = "None"
    return path


def uni2h(path: Path, x: NDArray[Any], coords: NDArray[Any]) -> Path:
    with h5py.File(path, "w") as file:
        file["features"], file["coords"] = x[None], coords[None]
    return path


def clam_h5(root: Path, name: str, x: NDArray[Any], coords: NDArray[Any], level: float = 1) -> Path:
    """``features/h5_files``, with the geometry in ``patches``."""
    path = root / "features" / "h5_files" / f"{name}.h5"
    geometry = root / "patches" / f"{name}.h5"
    for parent in (path.parent, geometry.parent):
        parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["features"], file["coords"] = x, coords.astype(np.int32)
    with h5py.File(geometry, "w") as file:
        attrs = file.create_dataset("coords", data=coords.astype(np.int64)).attrs
        attrs["patch_size"], attrs["patch_level"] = 512, 0
        attrs["downsample"] = np.array([level, level])
        attrs["name"], attrs["save_path"] = name, "results/patches"
    return path


def clam_pt(root: Path, name: str, x: NDArray[Any]) -> Path:
    path = root / "features" / "pt_files" / f"{name}.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(torch.from_numpy(x), path)
    return path


def stamp(path: Path, x: NDArray[Any], coords_um: NDArray[Any], **attrs: Any) -> Path:
    with h5py.File(path, "w") as file:
        file["feats"] = x.astype(np.float16)
        file["coords"] = coords_um.astype(np.float32)
        file.attrs.update(attrs)
    return path


def slideflow(path: Path, x: NDArray[Any], centres: NDArray[Any]) -> Path:
    torch.save(torch.from_numpy(x), path)
    np.savez(path.parent / f"{path.stem}.index.npz", centres)
    config = {"extractor": {"class": "uni2"}, "tile_px": 256, "tile_um": 128}
    (path.parent / "bags_config.json").write_text(json.dumps(config))
    return path


def slide2vec(
    root: Path, name: str, x: NDArray[Any], coords: NDArray[Any], form: str = "pt"
) -> Path:
    """What slide2vec 5 writes: features, their settings, and the coordinates of hs2p."""
    path = root / "tile_embeddings" / f"{name}.{form}"
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "pt":
        torch.save(torch.from_numpy(x), path)
    else:
        np.savez_compressed(path, features=x, tile_index=np.arange(len(x)))
    settings = {"encoder_name": "uni2", "tile_size_lv0": 512, "num_tiles": len(x)}
    path.with_name(f"{name}.meta.json").write_text(json.dumps(settings))
    (root / "tiles").mkdir(exist_ok=True)
    np.savez_compressed(
        root / "tiles" / f"{name}.coordinates.npz",
        tile_index=np.arange(len(x)), x=coords[:, 0], y=coords[:, 1],
    )  # fmt: skip
    return path


def anndata(path: Path, x: NDArray[Any], coords: NDArray[Any]) -> Path:
    """The parts of an ``.h5ad`` of LazySlide that are read, and one that is not."""
    with h5py.File(path, "w") as file:
        file.attrs["encoding-type"] = "anndata"
        file["X"] = x
        file["obsm/spatial"] = coords.astype(np.float64)
        file["uns/tile_spec/width"], file["uns/tile_spec/base_downsample"] = 256, 2.0
        file["obs/tile_id"] = np.arange(len(x))
    return path


def wsidata(
    path: Path, x: NDArray[Any], coords: NDArray[Any], version: int = 3, table: str = "uni_tiles",
    **settings: Any,
) -> Path:  # fmt: skip
    """The parts of a store of LazySlide that are read; its tiles are listed in another order."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zarr

    store = zarr.open_group(path, mode="a", zarr_format=version)  # type: ignore[arg-type]
    store.attrs["tile_spec"] = {"tiles": {"width": 256, "base_downsample": 2.0}}
    own = store.require_group(f"tables/{table}")
    own.attrs.update({"region": "tiles", "instance_key": "tile_id"})
    own.create_array("X", data=x, chunks=(5, 4), **settings)
    ids = np.arange(len(x))
    own.create_array("obs/tile_id", data=ids)
    (path / "shapes" / "tiles").mkdir(parents=True, exist_ok=True)
    columns = {"tile_id": ids, "x": coords[:, 0], "y": coords[:, 1]}
    shapes = pa.table({name: column[::-1] for name, column in columns.items()})
    pq.write_table(shapes, path / "shapes" / "tiles" / "shapes.parquet")
    return path
