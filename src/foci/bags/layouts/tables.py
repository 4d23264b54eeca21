"""Tables of tiles: AnnData ``.h5ad``, and Parquet with one column of feature vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from numpy.typing import NDArray

from foci.bags.layouts import hdf5
from foci.bags.layouts.layout import Layout, Stored, check_size, expecting, one_number
from foci.errors import BagError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ANNDATA = (".h5ad",)


def _read_h5ad(path: Path, mpp: float | None) -> Stored:
    """``X`` and ``obsm/spatial``, the top-left corners, as LazySlide exports them.

    The side of a tile is the ``width`` times the ``base_downsample`` of ``uns/tile_spec``.
    """
    with hdf5.open_file(path) as file:
        if isinstance(hdf5.item(file, "X"), h5py.Group):
            raise BagError(path, "'X' is a sparse matrix, not features", "write it dense")
        features = hdf5.numbers(hdf5.require(file, "X"), path)
        coords = _optional(file, "obsm/spatial", path)
        width = _optional(file, "uns/tile_spec/width", path)
        scale = _optional(file, "uns/tile_spec/base_downsample", path)
    notes: tuple[str, ...] = ()
    if coords is not None:
        notes = ("obsm/spatial is taken as the top-left corners of the tiles",)
    if features.dtype.kind in "iu":
        raise BagError(path, f"'X' holds {features.dtype}: counts, not features", "give features")
    size = None
    if width is not None and scale is not None:
        size = one_number(width, "width", path) * one_number(scale, "base_downsample", path)
    places = None if coords is None else coords[..., :2]  # a third number is depth
    return Stored(features=features, coords=places, patch_size=size, notes=notes)


def _optional(file: h5py.File, name: str, path: Path) -> NDArray[Any] | None:
    found = hdf5.item(file, name)
    return hdf5.numbers(found, path) if isinstance(found, h5py.Dataset) else None


_VECTORS = ("features", "feature", "embedding", "embeddings", "feats", "vector")
_PLACES = (("x", "y"), ("coord_x", "coord_y"), ("x_coord", "y_coord"), ("minx", "miny"))
_SIZES = ("patch_size_level0", "tile_size_level0", "tile_size_lv0")
_ROWS = 4096


def _read_parquet(path: Path, mpp: float | None) -> Stored:
    """A column of lists of numbers, and two of coordinates (``x`` and ``y``)."""
    with open_parquet(path) as file:
        schema = file.schema_arrow
        lists = [field.name for field in schema if _is_vector(field.type)]
        named = next((name for name in _VECTORS if name in lists), None)
        if named is None and len(lists) != 1:
            found = ", ".join(schema.names) or "nothing"
            what = f"has no column of feature vectors (it holds {found})"
            raise BagError(path, what, "name it features")
        place = next((pair for pair in _PLACES if set(pair) <= set(schema.names)), None)
        features = _vectors(file, named or lists[0], path)
        coords = None
        if place is not None:
            columns = [numbers(file, name, path) for name in place]
            coords = np.stack(columns, axis=1)
        size = next((name for name in _SIZES if name in schema.names), None)
        side = None if size is None else one_number(numbers(file, size, path), size, path)
    return Stored(features=features, coords=coords, patch_size=side)


@contextmanager
def open_parquet(path: Path, fix: str = "write it again") -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; reading it is part of the block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    damage = (pa.ArrowException, OSError, ValueError, TypeError, KeyError)
    with (
        expecting(path, damage, lambda error: f"is not readable Parquet ({error})", fix),
        pq.ParquetFile(path) as file,
    ):
        yield file


def _is_vector(kind: pa.DataType) -> bool:
    import pyarrow.types as kinds

    lists = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
    return any(test(kind) for test in lists) and kinds.is_floating(kind.value_type)


def _vectors(file: pq.ParquetFile, name: str, path: Path) -> NDArray[np.float32]:
    """The vectors, a block of rows at a time; all of one width, and within the limit."""
    rows, done = file.metadata.num_rows, 0
    features = np.empty((0, 0), dtype=np.float32)
    for batch in file.iter_batches(batch_size=_ROWS, columns=[name]):
        column = batch.column(0)
        if column.null_count:
            raise BagError(path, f"column {name!r} has empty cells", "drop these tiles")
        lengths = np.asarray(column.value_lengths())
        if not done:
            width = int(lengths[0]) if len(lengths) else 0
            check_size((rows, width), 4, path)
            features = np.empty((rows, width), dtype=np.float32)
        if (lengths != features.shape[1]).any():
            raise BagError(path, f"column {name!r} has vectors of several widths", "write one")
        values = column.flatten().to_numpy(zero_copy_only=False)
        features[done : done + len(column)] = values.reshape(len(column), -1)
        done += len(column)
    return features[:done]


def numbers(file: pq.ParquetFile, name: str, path: Path) -> NDArray[Any]:
    """A column of numbers, without empty cells and within the limit."""
    check_size((file.metadata.num_rows,), 8, path)
    column = file.read(columns=[name]).column(0)
    if column.null_count:
        raise BagError(path, f"column {name!r} has empty cells", "drop these tiles")
    found: NDArray[Any] = column.to_numpy()
    return found


LAYOUT_ANNDATA = Layout("AnnData .h5ad (LazySlide)", ANNDATA, lambda path: True, _read_h5ad)
LAYOUT_PARQUET = Layout(
    "Parquet with a vector column", (".parquet",), lambda path: True, _read_parquet
)
