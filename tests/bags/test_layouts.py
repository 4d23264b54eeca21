"""Every layout is recognised by content and read into the same bag; bad files are refused."""

import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numcodecs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import zarr

from foci.bags import LAYOUTS, Cohort, read_bag
from foci.bags.layouts import detect
from foci.bags.matching import find_features
from foci.errors import BagError, EmptyBagError, FociError, NotFiniteError
from tests.makers import features as write

X = write.features()
XY = write.grid()


def test_trident(tmp_path: Path) -> None:
    bag = read_bag(write.trident(tmp_path / "s1.h5", X, XY, size=512))
    origin = bag.provenance
    assert (bag.slide_id, origin.layout, origin.encoder) == ("s1", "trident", "uni_v2")
    assert (bag.patch_size, bag.patch_size_inferred, bag.unit) == (512, False, "px")
    assert bag.features.dtype == np.float32
    assert bag.coords is not None
    assert bag.coords.dtype == np.int64
    np.testing.assert_array_equal(bag.features, X)
    np.testing.assert_array_equal(bag.coords, XY)


@pytest.mark.parametrize("n", [1, 12])
def test_published_uni2h_has_a_leading_axis_even_for_one_tile(tmp_path: Path, n: int) -> None:
    bag = read_bag(write.uni2h(tmp_path / "s.h5", X[:n], XY[:n]))
    assert bag.provenance.layout == "uni2h"
    np.testing.assert_array_equal(bag.features, X[:n])
    assert (bag.patch_size, bag.patch_size_inferred) == ((None, False) if n == 1 else (256, True))


@pytest.mark.parametrize(("downsample", "size"), [(1.0, 512), (4.0, 2048)])
def test_clam_takes_the_patch_size_from_the_patches_folder(
    tmp_path: Path, downsample: float, size: int
) -> None:
    bag = read_bag(write.clam_h5(tmp_path, "s", X, write.contour_grid(), downsample))
    assert bag.provenance.layout == "clam"
    assert (bag.patch_size, bag.patch_size_inferred) == (size, False)


def test_clam_without_patches_infers_the_size_across_contours_of_different_origin(
    tmp_path: Path,
) -> None:
    path = write.clam_h5(tmp_path, "s", X, write.contour_grid())
    (tmp_path / "patches" / "s.h5").unlink()
    bag = read_bag(path)
    assert (bag.patch_size, bag.patch_size_inferred) == (512, True)


def test_clam_older_custom_downsample(tmp_path: Path) -> None:
    path = write.clam_h5(tmp_path, "s", X, XY)
    with h5py.File(tmp_path / "patches" / "s.h5", "a") as file:
        file["coords"].attrs["custom_downsample"] = 2
    assert read_bag(path).patch_size == 1024


def test_clam_pt_borrows_coordinates_from_h5_files(tmp_path: Path) -> None:
    write.clam_h5(tmp_path, "s", X, XY)
    bag = read_bag(write.clam_pt(tmp_path, "s", X))
    assert bag.provenance.layout == "clam-pt"
    assert bag.patch_size == 512
    np.testing.assert_array_equal(bag.coords, XY)


@pytest.mark.parametrize("half", [False, True])
def test_clam_pt_in_another_order_than_its_h5_goes_without_coordinates(
    tmp_path: Path, half: bool
) -> None:
    order = np.random.default_rng(0).permutation(len(X))
    stored = X[order].astype(np.float16).astype(np.float32) if half else X[order]
    path = write.clam_pt(tmp_path, "s", stored)
    write.clam_h5(tmp_path, "s", X, XY)
    bag = read_bag(path)
    says = "s.h5 holds the tiles of s.pt in another order: its coordinates are not used"
    assert bag.coords is None
    assert bag.provenance.misplaced == says
    assert bag.provenance.notes == (says,)


@pytest.mark.parametrize("kind", ["same", "half precision", "other features", "damaged", "equal"])
def test_clam_pt_that_does_not_contradict_its_h5_has_its_coordinates(
    tmp_path: Path, kind: str
) -> None:
    own, theirs = X, X
    if kind == "half precision":
        own = X.astype(np.float16).astype(np.float32)
    elif kind == "other features":
        own = np.random.default_rng(5).normal(size=X.shape).astype(np.float32)
    elif kind == "equal":
        own = theirs = np.ones_like(X)
    path = write.clam_pt(tmp_path, "s", own)
    twin = write.clam_h5(tmp_path, "s", theirs, XY)
    if kind == "damaged":
        with h5py.File(twin, "r+") as file:
            del file["features"]
    bag = read_bag(path)
    np.testing.assert_array_equal(bag.coords, XY)
    assert bag.provenance.misplaced is None


def test_clam_h5_with_the_coordinates_of_patches_in_another_order(tmp_path: Path) -> None:
    path = write.clam_h5(tmp_path, "s", X, XY)
    assert read_bag(path).provenance.misplaced is None
    with h5py.File(path, "r+") as file:
        file["coords"][...] = XY[::-1]
    bag = read_bag(path)
    np.testing.assert_array_equal(bag.coords, XY[::-1])
    says = "patches/s.h5 lists the tiles of s.h5 in another order: tiles may be shown in the wrong"
    assert bag.provenance.misplaced == f"{says} places"
    with h5py.File(path, "r+") as file:
        file["coords"][...] = XY + 3
    assert read_bag(path).provenance.misplaced is None, "another grid is not another order"


def test_clam_pt_without_coordinates_of_its_own_run_says_so(tmp_path: Path) -> None:
    bag = read_bag(write.clam_pt(tmp_path, "s", X))
    assert bag.coords is None
    assert bag.provenance.notes == ("no h5_files beside it: no coordinates",)
    write.clam_h5(tmp_path, "s", X, XY)
    bag = read_bag(write.clam_pt(tmp_path, "s", X[:5]))
    assert bag.coords is None
    assert bag.provenance.notes == ("s.h5 has 12 coordinates for 5 tiles: not used",)


def test_stamp_21_in_micrometres_and_with_known_resolution(tmp_path: Path) -> None:
    path = write.stamp(
        tmp_path / "s.h5", X, write.grid(step=256), unit="um", tile_size_um=256.0,
        extractor="uni2", stamp_version="2.1.0",
    )  # fmt: skip
    raw, scaled = read_bag(path), read_bag(path, mpp=0.5)
    assert (raw.unit, raw.patch_size, scaled.unit, scaled.patch_size) == ("um", 256, "px", 512)
    np.testing.assert_array_equal(raw.coords, XY)
    np.testing.assert_array_equal(scaled.coords, 2 * XY)
    np.testing.assert_array_equal(raw.features, X.astype(np.float16).astype(np.float32))
    assert "give mpp" in raw.provenance.notes[0]


def test_stamp_20_and_historic(tmp_path: Path) -> None:
    old = write.stamp(tmp_path / "a.h5", X, write.grid(step=256), unit="um", tile_size=256.0)
    assert read_bag(old).patch_size == 256
    historic = write.stamp(tmp_path / "b.h5", X, write.grid(step=224, origin=(224, 448)))
    bag = read_bag(historic)
    assert bag.patch_size == 256
    np.testing.assert_array_equal(bag.coords, write.grid(step=256, origin=(256, 512)))


@pytest.mark.parametrize("kind", ["slide", "patient"])
def test_stamp_slide_features_are_refused(tmp_path: Path, kind: str) -> None:
    path = write.stamp(tmp_path / "s.h5", X, XY, feat_type=kind)
    with pytest.raises(BagError, match=rf"s\.h5: holds {kind} features.*use tile features"):
        read_bag(path)


def test_slideflow_centres_become_corners(tmp_path: Path) -> None:
    path = write.slideflow(tmp_path / "s.pt", X, XY + 128)
    bag, scaled = read_bag(path), read_bag(path, mpp=0.25)
    assert (bag.provenance.layout, bag.provenance.encoder) == ("slideflow", "uni2")
    assert (bag.patch_size, bag.patch_size_inferred) == (256, True)
    np.testing.assert_array_equal(bag.coords, XY)
    assert (scaled.patch_size, scaled.patch_size_inferred) == (512, False)
    np.testing.assert_array_equal(scaled.coords, XY + 128 - 256)


def test_npz_and_torchmil_npy(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", features=X, coords=XY, patch_size_level0=300)
    assert read_bag(tmp_path / "a.npz").patch_size == 300
    for folder, array in (("features", X), ("coords", write.grid(step=1, origin=(0, 0)))):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "b.npy", array)
    bag = read_bag(tmp_path / "features" / "b.npy")
    assert (bag.unit, bag.patch_size, bag.provenance.layout) == ("grid", 1, "npy")


def test_pickled_numpy_array_in_a_pt_file_is_read(tmp_path: Path) -> None:
    torch.save(X, tmp_path / "s.pt")
    np.testing.assert_array_equal(read_bag(tmp_path / "s.pt").features, X)


class Boom:
    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return pytest.fail, ("a pickle was executed",)


@pytest.mark.parametrize("writer", [torch.save, lambda obj, p: p.write_bytes(pickle.dumps(obj))])
def test_pickled_objects_are_never_executed(tmp_path: Path, writer: Callable[..., object]) -> None:
    writer(Boom(), tmp_path / "s.pt")
    with pytest.raises(BagError, match=r"s\.pt: .*torch\.save\(tensor, path\)"):
        read_bag(tmp_path / "s.pt")


@pytest.mark.parametrize("form", ["pt", "npz"])
def test_slide2vec(form: str, tmp_path: Path) -> None:
    bag = read_bag(write.slide2vec(tmp_path, "s", X, XY, form))
    assert (bag.provenance.layout, bag.provenance.encoder) == ("slide2vec", "uni2")
    assert (bag.patch_size, bag.patch_size_inferred) == (512, False)
    np.testing.assert_array_equal(bag.features, X)
    np.testing.assert_array_equal(bag.coords, XY)
    assert list(find_features(tmp_path)) == ["s"]
    (tmp_path / "tiles" / "s.coordinates.npz").unlink()
    assert read_bag(bag.provenance.path).coords is None
    np.savez(tmp_path / "tiles" / "s.coordinates.npz", x=XY[:, 0])
    with pytest.raises(BagError, match="has no array 'y'"):
        read_bag(bag.provenance.path)


def test_anndata(tmp_path: Path) -> None:
    path = write.anndata(tmp_path / "s.h5ad", X, XY)
    bag = read_bag(path)
    assert (bag.provenance.layout, bag.patch_size) == ("anndata", 512)
    np.testing.assert_array_equal(bag.features, X)
    np.testing.assert_array_equal(bag.coords, XY)
    assert "top-left corners" in bag.provenance.notes[0]
    with h5py.File(path, "a") as file:
        del file["X"]
        file["X/data"] = X[0]
    assert "'X' is a sparse matrix, not features; write it dense" in refusal(path)
    with h5py.File(path, "a") as file:
        del file["X"]
        file["X"] = np.ones((12, 3), dtype=np.int64)
    assert "'X' holds int64: counts, not features" in refusal(path)


@pytest.mark.parametrize("kind", ["list", "fixed"])
def test_parquet_with_a_column_of_vectors(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    flat = pa.array(X.ravel())
    vectors = (
        pa.FixedSizeListArray.from_arrays(flat, X.shape[1])
        if kind == "fixed"
        else pa.array(X.tolist(), pa.list_(pa.float32()))
    )
    columns = {"tile": list(range(12)), "embedding": vectors, "x": XY[:, 0], "y": XY[:, 1]}
    pq.write_table(pa.table(columns), path, row_group_size=5)
    bag = read_bag(path)
    assert (bag.provenance.layout, bag.patch_size, bag.patch_size_inferred) == (
        "parquet",
        256,
        True,
    )
    np.testing.assert_array_equal(bag.features, X)
    np.testing.assert_array_equal(bag.coords, XY)
    pq.write_table(pa.table({**columns, "patch_size_level0": [512] * 12}), path)
    assert read_bag(path).patch_size == 512


def test_parquet_that_is_no_bag_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.parquet"
    pq.write_table(pa.table({"x": [1], "name": ["a"]}), path)
    assert "has no column of feature vectors (it holds x, name); name it features" in refusal(path)
    ragged = pa.array([[1.0, 2.0], [3.0]], pa.list_(pa.float32()))
    pq.write_table(pa.table({"features": ragged}), path)
    assert "column 'features' has vectors of several widths" in refusal(path)
    pq.write_table(pa.table({"features": pa.array([[1.0], None])}), path)
    assert "column 'features' has empty cells" in refusal(path)
    path.write_bytes(path.read_bytes()[:-20])
    assert "is not readable Parquet" in refusal(path)
    pq.write_table(pa.table({"features": X.tolist()}), path)
    monkeypatch.setenv("FOCI_MAX_BAG_GB", "1e-7")
    assert "where 1e-07 GB are allowed" in refusal(path)


@pytest.mark.parametrize(
    ("version", "codec"),
    [
        (3, "auto"), (3, None), (3, zarr.codecs.GzipCodec()), (3, zarr.codecs.BloscCodec()),
        (2, numcodecs.Blosc()), (2, numcodecs.Zlib()), (2, numcodecs.Zstd()), (2, None),
    ],
)  # fmt: skip
def test_wsidata(version: int, codec: Any, tmp_path: Path) -> None:
    path = write.wsidata(tmp_path / "s.zarr", X, XY, version, compressors=codec)
    bag = read_bag(path)
    assert (bag.provenance.layout, bag.provenance.encoder) == ("wsidata", "uni")
    assert (bag.slide_id, bag.patch_size) == ("s", 512)
    np.testing.assert_array_equal(bag.features, X)
    np.testing.assert_array_equal(bag.coords, XY)
    assert find_features(tmp_path) == {"s": path}
    beside = LAYOUTS["wsidata"].sidecars(path)
    there = {file for file in path.rglob("*") if file.is_file()}
    unread = {".zgroup", "zarr.json", ".zattrs"}  # of the groups
    assert {file.name for file in there - set(beside)} <= unread
    assert path / "shapes" / "tiles" / "shapes.parquet" in beside


def test_wsidata_in_shards(tmp_path: Path) -> None:
    """12 x 6 numbers in chunks of 5 x 4, four to a file."""
    path = write.wsidata(tmp_path / "s.zarr", X, XY, shards=(10, 8))
    np.testing.assert_array_equal(read_bag(path).features, X)
    shard = path / "tables" / "uni_tiles" / "X" / "c" / "0" / "0"
    whole = bytearray(shard.read_bytes())
    whole[-4 - 64 : -4 - 56] = (2**40).to_bytes(8, "little")
    shard.write_bytes(whole)
    assert "is damaged (" in refusal(path)
    shard.write_bytes(b"short")
    assert "is damaged (" in refusal(path)


def test_one_table_of_a_store_with_several(tmp_path: Path) -> None:
    path = write.wsidata(tmp_path / "s.zarr", X, XY)
    write.wsidata(path, 2 * X, XY, table="conch_tiles")
    line = "has several tables of features (conch_tiles, uni_tiles); name one of them as feature_"
    assert line in refusal(path)
    bag = read_bag(path / "tables" / "conch_tiles", slide_id="s")
    assert (bag.provenance.encoder, bag.slide_id) == ("conch", "s")
    np.testing.assert_array_equal(bag.features, 2 * X)
    table = tmp_path / "labels.csv"
    table.write_text("slide_id,label,feature_path\ns,a,s.zarr/tables/uni_tiles\n")
    np.testing.assert_array_equal(Cohort.read(tmp_path, table).bag("s").features, X)


def damage_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_damaged_and_hostile_stores_are_refused(tmp_path: Path) -> None:
    good = write.wsidata(tmp_path / "good.zarr", X, XY)
    own = Path("tables", "uni_tiles", "X")

    def in_chunks(shape: list[int]) -> dict[str, Any]:
        return {"name": "regular", "configuration": {"chunk_shape": shape}}

    def store() -> Path:
        path = tmp_path / "s.zarr"
        shutil.rmtree(path, ignore_errors=True)
        return Path(shutil.copytree(good, path))

    for changes, says in [
        ({"shape": [10**9, 1024]}, "claims 1000000000 x 1024 numbers, 4096.0 GB in memory"),
        ({"chunk_grid": in_chunks([10**9, 99])}, "claims 1000000000 x 99 numbers"),
        ({"shape": [10**6, 6], "chunk_grid": in_chunks([1, 1])}, "more than 100000 chunks"),
        ({"shape": [12, -6]}, "sizes are no whole numbers"),
        ({"shape": [True, 6]}, "sizes are no whole numbers"),
        ({"shape": 12}, "is no array of numbers that FOCI reads (TypeError"),
        ({"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}]}, "by numcodecs.pickle"),
        ({"codecs": [{"name": "bytes"}, {"name": "crc32c"}, {"name": "zstd"}]}, "by bytes, crc32c"),
        ({"codecs": [{"name": "transpose"}]}, "it is encoded by transpose"),
        ({"data_type": "string"}, "is no array of numbers that FOCI reads"),
        ({"data_type": "object"}, "its type is |O"),
        ({"node_type": "group"}, "it is a group, as of a sparse matrix"),
        ({"data_type": "float64"}, "is damaged (Corrupt ZSTD"),
        ({"codecs": [{"name": "bytes"}]}, "is damaged (it holds"),
        ({"chunk_key_encoding": {"name": "default", "configuration": {"separator": "/../"}}},
         "are separated by '/../'"),
    ]:  # fmt: skip
        damage_json(store() / own / "zarr.json", **changes)
        assert says in refusal(tmp_path / "s.zarr")

    path = store()
    chunk = path / own / "c" / "0" / "0"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-3])
    assert "is damaged (ZSTD decompression failed" in refusal(path)
    chunk.write_bytes(bytes(10_000))
    assert "is larger than its array says" in refusal(path)
    chunk.unlink()
    assert f"lacks the chunk {own}/c/0/0" in refusal(path)
    (tmp_path / "outside").write_bytes(whole)
    chunk.symlink_to(tmp_path / "outside")
    assert "is a link out of its store" in refusal(path)
    chunk.unlink()
    os.mkfifo(chunk)
    assert "is a pipe (FIFO), not a file" in refusal(path)

    shapes = store() / "shapes" / "tiles" / "shapes.parquet"
    columns = pq.read_table(shapes)
    pq.write_table(columns.slice(1), shapes)
    assert "does not name each tile of the features once" in refusal(path)
    pq.write_table(columns.drop_columns(["x"]), shapes)
    assert "has no column x" in refusal(path)
    shapes.unlink()
    assert read_bag(path).coords is None
    damage_json(path / "tables" / "uni_tiles" / "zarr.json", attributes={"region": "../../.."})
    assert read_bag(path).coords is None
    shutil.rmtree(path / own)
    assert "has no table of features (uni_tiles in 'tables')" in refusal(path)


def test_blosc_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write.wsidata(tmp_path / "s.zarr", X, XY, 2, compressors=numcodecs.Blosc())
    chunk = path / "tables" / "uni_tiles" / "X" / "0.0"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:4] + (2**31).to_bytes(4, "little") + whole[8:])
    assert "it claims 2147483648 bytes, not 80" in refusal(path)
    chunk.write_bytes(whole)
    monkeypatch.setitem(sys.modules, "numcodecs", None)
    assert "by Blosc, which is not installed; pip install 'foci-mil[zarr]'" in refusal(path)


def test_a_layout_can_be_forced_by_name(tmp_path: Path) -> None:
    path = write.trident(tmp_path / "s.h5", X, XY, size=512)
    bag = read_bag(path, layout="clam")
    assert (bag.patch_size, bag.patch_size_inferred) == (256, True)


def test_every_layout_is_described() -> None:
    for name in LAYOUTS:
        assert LAYOUTS[name].description
        assert all(ending.startswith(".") for ending in LAYOUTS[name].suffixes)


def test_unknown_contents_are_refused_with_what_was_found(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "coords.h5", "w") as file:
        file["coords"] = XY
    with pytest.raises(BagError, match=r"neither 'features' nor 'feats' \(it holds coords"):
        detect(tmp_path / "coords.h5")
    with h5py.File(tmp_path / "group.h5", "w") as file:
        file["features/uni_v2"] = X
    with pytest.raises(BagError, match=r"'features' is a group \(it holds uni_v2"):
        detect(tmp_path / "group.h5")
    (tmp_path / "s.bin").touch()
    with pytest.raises(BagError, match=r"unknown ending '\.bin'; known are \.h5"):
        detect(tmp_path / "s.bin")


# Bad feature files: one line with the file, what is wrong and what to do.


def refusal(path: Path, kind: type[FociError] = BagError) -> str:
    with pytest.raises(kind) as caught:
        read_bag(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message
    assert caught.value.fix
    return message


def test_truncated_hdf5(tmp_path: Path) -> None:
    path = write.trident(tmp_path / "cut.h5", write.features(2000, 64), write.grid(2000))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "truncated" in refusal(path)


def test_damaged_chunk(tmp_path: Path) -> None:
    path = tmp_path / "hole.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("features", data=X, chunks=X.shape, fletcher32=True)
        start = dataset.id.get_chunk_info(0).byte_offset
    content = bytearray(path.read_bytes())
    content[start + 5] ^= 0xFF
    path.write_bytes(content)
    assert "cannot be read" in refusal(path)


def test_not_the_format_its_ending_says(tmp_path: Path) -> None:
    for name in ("a.h5", "a.pt", "a.npz", "a.npy"):
        (tmp_path / name).write_bytes(b"nonsense")
        says = "not an HDF5 file" if name == "a.h5" else "is not a readable"
        assert says in refusal(tmp_path / name)
    (tmp_path / "a.h5").write_bytes(b"")
    assert "is empty" in refusal(tmp_path / "a.h5")
    assert "does not exist" in refusal(tmp_path / "gone.h5")


@pytest.mark.parametrize("shape", [(0, 6), (0,), (1, 0, 6)])
def test_zero_tiles(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = write.trident(tmp_path / "bare.h5", np.zeros(shape, np.float32), np.zeros((0, 2)))
    assert "has no tiles" in refusal(path, EmptyBagError)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite(tmp_path: Path, value: float) -> None:
    x = X.copy()
    x[3:5, 0] = value
    path = write.trident(tmp_path / "nan.h5", x, XY)
    message = refusal(path, NotFiniteError)
    assert "2 of 12 tiles hold NaN or Inf (first: tile 3)" in message


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"features": X[0]}, "one vector per slide cannot be audited"),
        ({"features": np.stack([X, X])}, "shape 2 x 12 x 6"),
        ({"features": X, "coords": XY[:7]}, "has 7 coordinates for 12 tiles"),
        ({"features": X, "coords": np.zeros((12, 5))}, "coords have shape 12 x 5"),
        ({"embeddings": X}, "it holds embeddings"),
    ],
)
def test_arrays_that_are_no_bag(tmp_path: Path, arrays: dict[str, Any], says: str) -> None:
    np.savez(tmp_path / "odd.npz", **arrays)
    assert says in refusal(tmp_path / "odd.npz")
