"""LazySlide's wsidata: a SpatialData store ``<slide>.zarr`` with features in its ``tables``.

A table of features is AnnData: ``X``, and ``obs/tile_id``. Its attribute ``region`` names the
shapes whose columns ``tile_id``, ``x`` and ``y`` say where the tiles lie, top-left corners in
pixels of level 0. ``tile_spec`` among the attributes of the store has the size of a tile.

A store says itself how it is decoded, and the Zarr library would do so by pickle if asked. Here the
arrays are read without it, versions 2 and 3: by four codecs, chunk by chunk, each within the size
that its array declares, and from files inside the store only.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foci.bags.layouts.layout import (
    STORE,
    Layout,
    Stored,
    check_file,
    check_size,
    expecting,
    json_beside,
    one_number,
)
from foci.bags.layouts.tables import numbers, open_parquet
from foci.errors import BagError, shortened

_MOST_CHUNKS = 100_000
_METADATA = ("zarr.json", ".zarray")
_NUMBERS = re.compile(r"[<>|][fiu][1248]")
_NEVER_WRITTEN = 2**64 - 1
_DAMAGED = "write the store again"


@dataclass(frozen=True)
class _Array:
    """An array of a store, as its metadata declare it.

    ``files`` is the shape of what one file holds, ``chunks`` that of what is encoded together;
    ``first`` begins the name of a file.
    """

    folder: Path
    shape: tuple[int, ...]
    files: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    codec: str | None
    first: str
    separator: str
    fill: Any


def _read(path: Path, mpp: float | None) -> Stored:
    """The only table of features of a store, or the table that the path names."""
    store, table = _table(path)
    features = _numbers(_array(table / "X", store), store, holes=False)
    if features.dtype.kind in "iu":
        raise BagError(path, f"'X' holds {features.dtype}: counts, not features", "give features")
    region, shapes = _shapes(table, store)
    if shapes is None:
        return Stored(features, notes=("the store has no shapes that say where the tiles lie",))
    ids = _numbers(_array(table / "obs" / "tile_id", store), store)
    return Stored(
        features=features,
        coords=_coordinates(shapes, ids),
        patch_size=_tile_size(store, region),
        encoder=table.name.removesuffix(f"_{region}"),
    )


def _table(path: Path) -> tuple[Path, Path]:
    """The store, and the folder of its table."""
    if path.suffix.lower() != STORE:
        return path.parent.parent, path
    tables = path / "tables"
    there = sorted(table for table in tables.glob("[!.]*") if table.is_dir())
    found = [table for table in there if _metadata(table / "X") is not None]
    if not found:
        names = ", ".join(table.name for table in there) or "nothing"
        what = f"has no table of features ({names} in 'tables')"
        raise BagError(path, what, "extract its features with LazySlide")
    if len(found) > 1:
        several = ", ".join(table.name for table in found)
        fix = f"name one of them as feature_path of the label table, such as {found[0]}"
        raise BagError(path, f"has several tables of features ({several})", fix)
    return path, found[0]


def _shapes(table: Path, store: Path) -> tuple[str, Path | None]:
    """The name of the shapes of a table, and the file of their columns."""
    region = _attributes(table, store).get("region")
    region = region[0] if isinstance(region, list) and len(region) == 1 else region
    if not isinstance(region, str) or region in ("", ".", "..") or Path(region).name != region:
        return "", None
    file = store / "shapes" / region / "shapes.parquet"
    return region, _inside(file, store) if file.exists() else None


def _coordinates(shapes: Path, ids: NDArray[Any]) -> NDArray[Any]:
    """Corners ``[N, 2]`` of the tiles that a table names."""
    with open_parquet(shapes, _DAMAGED) as file:
        if missing := {"tile_id", "x", "y"} - set(file.schema_arrow.names):
            what = f"has no column {', '.join(sorted(missing))}"
            raise BagError(shapes, what, "tile the slide with LazySlide again")
        known, x, y = (numbers(file, name, shapes) for name in ("tile_id", "x", "y"))
    order = np.argsort(known, kind="stable")
    at = order[np.searchsorted(known, ids, sorter=order).clip(max=len(known) - 1)]
    if not np.array_equal(known[at], ids) or len(np.unique(known)) < len(known):
        what = "does not name each tile of the features once"
        raise BagError(shapes, what, "extract the features again")
    return np.stack([x[at], y[at]], axis=1)


def _tile_size(store: Path, region: str) -> float | None:
    """The ``width`` times the ``base_downsample`` that the tiles were cut with."""
    spec = _attributes(store, store).get("tile_spec")
    own = spec.get(region) if isinstance(spec, Mapping) else None
    if not isinstance(own, Mapping) or "width" not in own:
        return None
    scale = one_number(own.get("base_downsample", 1), "base_downsample", store)
    return one_number(own["width"], "width", store) * scale


def _metadata(folder: Path) -> Path | None:
    """The file that describes an array; of version 3 it may describe a group."""
    return next((folder / name for name in _METADATA if (folder / name).is_file()), None)


def _attributes(group: Path, store: Path) -> Mapping[str, Any]:
    for name, key in (("zarr.json", "attributes"), (".zattrs", None)):
        if (group / name).exists():
            content = json_beside(_inside(group / name, store), _DAMAGED)
            own = content if key is None else content.get(key)
            return own if isinstance(own, Mapping) else {}
    return {}


def _array(folder: Path, store: Path) -> _Array:
    """What an array declares; refused unless it is one of numbers that can be read here."""
    path = _metadata(folder)
    if path is None:
        raise BagError(store, f"has no array {folder.relative_to(store)}", _DAMAGED)
    given = json_beside(_inside(path, store), _DAMAGED)
    try:
        found = _version_3(folder, given) if path.name == "zarr.json" else _version_2(folder, given)
        sizes = (*found.shape, *found.files, *found.chunks)
        if any(type(size) is not int or size < 0 for size in sizes) or 0 in found.chunks:
            raise ValueError("sizes are no whole numbers")
        if not 1 <= len(found.shape) == len(found.files) == len(found.chunks) <= 3:
            raise ValueError(f"it has {len(found.shape)} dimensions, its chunks have others")
        if any(n % m or not n for n, m in zip(found.files, found.chunks, strict=True)):
            raise ValueError("its chunks do not fill a file")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        why = shortened(f"{type(error).__name__}: {error}", 80)
        raise BagError(path, f"is no array of numbers that FOCI reads ({why})", _DAMAGED) from None
    return found


def _version_3(folder: Path, given: Mapping[str, Any]) -> _Array:
    if given["node_type"] != "array":
        raise ValueError("it is a group, as of a sparse matrix")
    grid, keys, codecs = given["chunk_grid"], given["chunk_key_encoding"], given["codecs"]
    if grid["name"] != "regular":
        raise ValueError(f"its chunks are {grid['name']}")
    files = chunks = tuple(grid["configuration"]["chunk_shape"])
    if len(codecs) == 1 and codecs[0]["name"] == "sharding_indexed":
        shards = codecs[0]["configuration"]
        if shards.get("index_location", "end") != "end":
            raise ValueError("its index is not at the end")
        chunks, codecs = tuple(shards["chunk_shape"]), shards["codecs"]
    first, *others = codecs
    if first["name"] != "bytes" or len(others) > 1:
        raise ValueError(f"it is encoded by {', '.join(str(one['name']) for one in codecs)}")
    little = first.get("configuration", {}).get("endian", "little") == "little"
    plain = keys["name"] == "default"
    settings = keys.get("configuration", {})
    return _Array(
        folder,
        shape=tuple(given["shape"]),
        files=files,
        chunks=chunks,
        dtype=_dtype(np.dtype(str(given["data_type"])).newbyteorder("<" if little else ">").str),
        codec=_codec(others[0]["name"] if others else None),
        first="c" if plain else "",
        separator=_separator(settings.get("separator", "/" if plain else ".")),
        fill=given.get("fill_value", 0),
    )


def _version_2(folder: Path, given: Mapping[str, Any]) -> _Array:
    if given.get("filters") or given.get("order", "C") != "C":
        raise ValueError(f"filters {given.get('filters')}, order {given.get('order')}")
    compressor = given.get("compressor")
    return _Array(
        folder,
        shape=tuple(given["shape"]),
        files=tuple(given["chunks"]),
        chunks=tuple(given["chunks"]),
        dtype=_dtype(given["dtype"]),
        codec=_codec(None if compressor is None else compressor["id"]),
        first="",
        separator=_separator(given.get("dimension_separator", ".")),
        fill=given.get("fill_value", 0),
    )


def _dtype(name: str) -> np.dtype[Any]:
    if not _NUMBERS.fullmatch(name):
        raise ValueError(f"its type is {name}")
    return np.dtype(name)


def _codec(name: str | None) -> str | None:
    if name not in (None, "zstd", "gzip", "zlib", "blosc"):
        raise ValueError(f"it is encoded by {name}")
    return name


def _separator(given: str) -> str:
    if given not in ("/", "."):
        raise ValueError(f"names of its chunks are separated by {given!r}")
    return given


def _numbers(array: _Array, store: Path, holes: bool = True) -> NDArray[Any]:
    """The whole array, where a chunk that was never written holds zeros.

    Without ``holes``, or where it would hold something else, it is refused: of features it means
    damage.
    """
    holes = holes and not array.fill
    for shape in (array.shape, array.files):
        check_size(shape, array.dtype.itemsize, array.folder)
    found = np.zeros(array.shape, dtype=array.dtype)
    for place, corner in _places(array.shape, array.files, array.folder):
        name = array.separator.join(filter(None, (array.first, *map(str, place))))
        path = array.folder / name
        if not path.exists():
            if holes:
                continue
            raise BagError(store, f"lacks the chunk {path.relative_to(store)}", _DAMAGED)
        target = found[tuple(slice(start, None) for start in corner)]
        ends = [min(n, m) for n, m in zip(target.shape, array.files, strict=True)]
        part = tuple(map(slice, ends))
        target[part] = _content(_inside(path, store), array, [0] * len(ends) if holes else ends)[
            part
        ]
    return found


def _places(
    shape: tuple[int, ...], parts: tuple[int, ...], folder: Path
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Number and first corner of every part of an array."""
    counts = [range(math.ceil(n / m)) for n, m in zip(shape, parts, strict=True)]
    if math.prod(map(len, counts)) > _MOST_CHUNKS:
        what = f"claims more than {_MOST_CHUNKS} chunks"
        raise BagError(folder, what, "write the store with larger chunks")
    return [
        (place, tuple(n * m for n, m in zip(place, parts, strict=True)))
        for place in itertools.product(*counts)
    ]


def _content(path: Path, array: _Array, needed: list[int]) -> NDArray[Any]:
    """What one file holds: a chunk, or several and an index of where each begins and its length.

    Those that begin within ``needed`` must be there.
    """
    places = _places(array.files, array.chunks, array.folder)
    size = math.prod(array.chunks) * array.dtype.itemsize
    index = 16 * len(places) + 4 if array.files != array.chunks else 0  # with its checksum
    most = len(places) * (size + size // 8 + 4096) + index  # codecs add a little to noise
    if path.stat().st_size > most:
        raise BagError(path, "is larger than its array says", _DAMAGED)
    import pyarrow as pa

    found = np.zeros(array.files, dtype=array.dtype)
    damage = (pa.ArrowException, OSError, ValueError, RuntimeError, zlib.error)
    with expecting(path, damage, lambda error: f"is damaged ({error})", _DAMAGED):
        data = path.read_bytes()
        spans = [[0, len(data)]]
        if index:
            spans = np.frombuffer(data[-index:-4], "<u8").reshape(-1, 2).tolist()
        for (_, corner), (start, length) in zip(places, spans, strict=True):
            beyond = any(n >= m for n, m in zip(corner, needed, strict=True))
            if start == length == _NEVER_WRITTEN and beyond:
                continue
            chunk = _decoded(data[start : start + length], array.codec, size, path)
            at = tuple(slice(n, n + m) for n, m in zip(corner, array.chunks, strict=True))
            found[at] = np.frombuffer(chunk, dtype=array.dtype).reshape(array.chunks)
    return found


def _decoded(data: bytes, codec: str | None, size: int, path: Path) -> bytes:
    """The bytes of a chunk: as many as its array declares, and never more in memory."""
    import pyarrow as pa

    if codec in ("gzip", "zlib"):
        data = zlib.decompressobj(wbits=47).decompress(data, size + 1)
    elif codec == "zstd":
        data = pa.decompress(data, decompressed_size=size, codec="zstd", asbytes=True)
    elif codec == "blosc":
        claimed = int.from_bytes(data[4:8], "little"), int.from_bytes(data[12:16], "little")
        if claimed != (size, len(data)):
            raise ValueError(f"it claims {claimed[0]} bytes, not {size}")
        data = _blosc(path)(data)
    if len(data) != size:
        raise ValueError(f"it holds {len(data)} bytes, not {size}")
    return data


def _blosc(path: Path) -> Any:
    try:
        from numcodecs import blosc
    except ImportError:
        fix = "pip install 'foci-mil[zarr]'"
        raise BagError(path, "is compressed by Blosc, which is not installed", fix) from None
    return blosc.decompress


def _inside(path: Path, store: Path) -> Path:
    """The file, if it is a plain one and lies in the store also where links lead."""
    check_file(path)
    if not path.resolve().is_relative_to(store.resolve()):
        raise BagError(path, "is a link out of its store", "copy the file there")
    return path


def _sidecars(path: Path) -> tuple[Path, ...]:
    """Every file of the store that the bag depends on."""
    try:
        store, table = _table(path)
        shapes = _shapes(table, store)[1]
    except (BagError, OSError):
        return ()
    folders = (table / "X", table / "obs" / "tile_id")
    files = [
        Path(root, name)
        for folder in folders
        for root, _, names in os.walk(folder)
        for name in names
    ]
    roots = [store / name for name in ("zarr.json", ".zattrs") if (store / name).is_file()]
    return tuple(file for file in (*files, *roots, shapes) if file is not None and file.is_file())


LAYOUT = Layout("LazySlide's wsidata .zarr", (STORE,), lambda path: True, _read, _sidecars)
