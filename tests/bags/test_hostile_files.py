"""Damaged and hostile feature files: each is refused in one line, whatever is wrong with it."""

import io
import json
import logging
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from foci.bags import Cohort, Slide, read_bag
from foci.bags.layouts.tensor_file import check_pickle
from foci.bags.store import BagStore, BagStream
from foci.errors import BagError, FociError
from tests.makers import features as write

X = write.features()
XY = write.grid()


def refused(path: Path, **options: Any) -> str:
    """The refusal, which is one line, names a file and is short."""
    with pytest.raises(BagError) as raised:
        read_bag(path, **options)
    said = str(raised.value)
    assert said.count("\n") == 0
    assert len(said) < 1300
    return said


def changed(path: Path, change: Callable[[h5py.File], None]) -> Path:
    with h5py.File(path, "a") as file:
        change(file)
    return path


def set_coords(name: str, value: Any) -> Callable[[h5py.File], None]:
    return lambda file: file["coords"].attrs.__setitem__(name, value)


def test_every_truncated_npz(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    np.savez(path, features=X, coords=XY)
    whole = path.read_bytes()
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        assert "is not a readable NumPy file" in refused(path)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"{'descr': '<f4', 'fortran_order': False, 'shape': (", "is not a readable NumPy file"),
        (b"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "pickled objects"),
        (b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 99)}", "where 2 GB"),
    ],
)
def test_headers_of_npy(tmp_path: Path, header: bytes, says: str) -> None:
    path = tmp_path / "s.npy"
    padded = header.ljust(118) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded)
    assert says in refused(path)


def test_a_member_of_npz_that_nobody_needs_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    np.savez(path, features=X)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        huge = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            huge, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
        )
        archive.writestr("thumbnail.npy", huge.getvalue())
    np.testing.assert_array_equal(read_bag(path).features, X)


def test_bit_flips_in_hdf5(tmp_path: Path) -> None:
    whole = write.trident(tmp_path / "s.h5", X, XY).read_bytes()
    rng, outcomes = np.random.default_rng(0), set()
    for number in range(150):
        damaged = bytearray(whole)
        for place in rng.integers(0, min(len(whole), 3000), 4):
            damaged[place] ^= 1 << int(rng.integers(8))
        path = tmp_path / f"d{number}.h5"
        path.write_bytes(damaged)
        try:
            read_bag(path)
            outcomes.add("read")
        except BagError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("patch_size_level0", [256, 128], "patch_size_level0 is array([256, 128])"),
        ("patch_size_level0", float("nan"), "patch_size_level0 is nan, not one positive number"),
        ("patch_size_level0", "wide", "patch_size_level0 is 'wide'"),
        ("patch_size_level0", -4, "patch_size_level0 is -4"),
        ("patch_size_level0", 1e300, "patch_size_level0 is 1e+300"),
    ],
)
def test_attributes_of_another_type(tmp_path: Path, name: str, value: Any, says: str) -> None:
    path = changed(write.trident(tmp_path / "s.h5", X, XY), set_coords(name, value))
    assert says in refused(path)


def test_one_size_given_for_both_axes_is_one_size(tmp_path: Path) -> None:
    path = write.trident(tmp_path / "s.h5", X, XY)
    assert read_bag(changed(path, set_coords("patch_size_level0", [512, 512]))).patch_size == 512


def test_an_array_of_encoders(tmp_path: Path) -> None:
    path = write.trident(tmp_path / "s.h5", X, XY)
    changed(path, lambda file: file["features"].attrs.__setitem__("encoder", ["uni", "v2"]))
    assert "encoder is array(['uni', 'v2'], dtype=object), not one name" in refused(path)


def test_a_heap_of_texts_that_the_library_would_walk_forever(tmp_path: Path) -> None:
    path = write.stamp(tmp_path / "s.h5", X, XY, unit="um", extractor="uni2")
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    place = heap + 16  # of the first object
    while index := int.from_bytes(content[place : place + 2], "little"):
        assert index in (1, 2)
        place += 16 + -(-int.from_bytes(content[place + 8 : place + 16], "little") // 8) * 8
    assert read_bag(path).provenance.encoder == "uni2"
    content[place + 8 : place + 16] = bytes(8)  # the free space has no length
    path.write_bytes(content)
    assert "cannot be read (a damaged heap of texts)" in refused(path)


def dataset(*shape: int, **options: Any) -> Callable[[h5py.File, str], Any]:
    return lambda file, name: file.create_dataset(name, shape, "f4", **options)


def empty(file: h5py.File, name: str) -> None:
    file.create_dataset(name, data=h5py.Empty("f4"))


def link(target: Any) -> Callable[[h5py.File, str], Any]:
    return lambda file, name: file.__setitem__(name, target)


LARGE = (
    "claims 1000000000 x 64 numbers, 256.0 GB in memory where 2 GB are allowed; extract the slide "
    "again, or raise FOCI_MAX_BAG_GB if it is right"
)
UNWRITTEN = "'features' was created but never written"
OUTSIDE = "'features' is a link to another file, which FOCI does not follow"
ELSEWHERE = "keeps its numbers in another file"


@pytest.mark.parametrize(
    ("name", "make", "says"),
    [
        ("coords", h5py.File.create_group, "'coords' is a group"),
        ("coords", empty, "without a shape"),
        ("features", empty, "without a shape"),
        ("features", dataset(10**9, 64, chunks=(64, 64)), LARGE),
        ("features", dataset(12, 8, chunks=(4, 8)), UNWRITTEN),
        ("features", link(h5py.ExternalLink("/etc/passwd", "/features")), OUTSIDE),
        ("features", dataset(12, 8, external=[("/etc/passwd", 0, 9999)]), ELSEWHERE),
        ("features", lambda f, name: f.create_virtual_dataset(name, virtual()), ELSEWHERE),
        ("features", link(h5py.SoftLink("/features")), "without end"),
    ],
)
def test_items_of_hdf5(
    tmp_path: Path, name: str, make: Callable[[h5py.File, str], Any], says: str
) -> None:
    path = write.clam_h5(tmp_path, "s", X, XY)
    with h5py.File(path, "a") as file:
        del file[name]
        make(file, name)
    assert says in refused(path)


def virtual() -> h5py.VirtualLayout:
    layout = h5py.VirtualLayout(shape=(12, 8), dtype="f4")
    layout[:] = h5py.VirtualSource("/etc/passwd", "features", shape=(12, 8))
    return layout


def test_links_inside_a_file_are_followed_but_not_out_of_it(tmp_path: Path) -> None:
    path = write.clam_h5(tmp_path, "s", X, XY)

    def moved(file: h5py.File) -> None:
        file.move("features", "encoders/uni")
        file["features"] = h5py.SoftLink("/encoders/uni")

    np.testing.assert_array_equal(read_bag(changed(path, moved)).features, X)

    def hidden(file: h5py.File) -> None:
        del file["features"]
        file["encoders/out"] = h5py.ExternalLink("/etc/passwd", "/")
        file["features"] = h5py.SoftLink("encoders/out/x")

    assert "'encoders/out' is a link to another file" in refused(changed(path, hidden))


SPECIAL = {
    "sparse": torch.from_numpy(X).to_sparse(),
    "quantised": torch.quantize_per_tensor(torch.from_numpy(X), 0.1, 0, torch.qint8),
    "meta": torch.empty(12, 8, device="meta"),
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_tensors_that_are_not_plain(tmp_path: Path, kind: str) -> None:
    torch.save(SPECIAL[kind], tmp_path / "s.pt")
    assert f"holds a {kind} tensor" in refused(tmp_path / "s.pt")


def test_an_expanded_tensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.pt"
    torch.save(torch.zeros(1).expand(10**9, 1024), path)
    assert path.stat().st_size < 2000
    assert "claims 1000000000 x 1024 numbers, 4096.0 GB" in refused(path)
    torch.save(torch.zeros(1).expand(1000, 1024), path)
    assert len(read_bag(path)) == 1000
    monkeypatch.setenv("FOCI_MAX_BAG_GB", "0.001")
    assert "where 0.001 GB are allowed" in refused(path)
    monkeypatch.setenv("FOCI_MAX_BAG_GB", "much")
    with pytest.raises(FociError, match=r"FOCI_MAX_BAG_GB: is 'much'; give gigabytes"):
        read_bag(path)


def test_a_compressed_record_in_a_pt_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty kilobytes that unpack to thirty megabytes."""
    monkeypatch.setenv("FOCI_MAX_BAG_GB", "0.01")
    torch.save(torch.zeros(12, 8), tmp_path / "good.pt")
    with zipfile.ZipFile(tmp_path / "good.pt") as good:
        records = {name: good.read(name) for name in good.namelist()}
    with zipfile.ZipFile(tmp_path / "s.pt", "w", zipfile.ZIP_DEFLATED) as bomb:
        for name, content in records.items():
            if not name.endswith("data/0"):
                bomb.writestr(name, content)
        with bomb.open("good/data/0", "w", force_zip64=True) as record:
            for _ in range(30):
                record.write(bytes(2**20))
    assert "where 0.01 GB are allowed" in refused(tmp_path / "s.pt")


def doubled(times: int, *, nested: bool = False) -> bytes:
    step = b"\x85" if nested else b"2\x86"
    return b"\x80\x02}N" + step * times + b"Ns."


@pytest.mark.parametrize("content", [doubled(64), doubled(100_000, nested=True)])
def test_keys_that_take_forever_to_hash(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ValueError, match="too many or too deeply nested parts"):
        check_pickle(io.BytesIO(content))
    with zipfile.ZipFile(tmp_path / "s.pt", "w") as archive:
        archive.writestr("s/data.pkl", content)
        archive.writestr("s/version", "3\n")
    assert "too many or too deeply nested" in refused(tmp_path / "s.pt")
    (tmp_path / "old.pt").write_bytes(pickle.dumps(1, 2) + content)
    assert "too many or too deeply nested" in refused(tmp_path / "old.pt")


WRITERS: dict[str, Callable[[Path, Any], None]] = {
    ".h5": lambda path, x: write.uni2h(path, x, XY) and None,
    ".npz": lambda path, x: np.savez(path, features=x),
    ".npy": np.save,
    ".pt": lambda path, x: torch.save(torch.from_numpy(x), path),
}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("dtype", ["complex64", "int64", "uint8", "bool"])
def test_only_real_numbers_are_features_in_every_layout(
    tmp_path: Path, ending: str, dtype: str
) -> None:
    path = tmp_path / f"s{ending}"
    WRITERS[ending](path, X.astype(dtype))
    assert f"features are {dtype}, not floating point" in refused(path)


@pytest.mark.parametrize(
    ("coords", "says"),
    [
        (XY.astype(np.complex64), "coordinates are complex64, not numbers"),
        (XY.astype(bool), "coordinates are bool, not numbers"),
        (XY * 2**50, "coordinates are beyond 2^53"),
        (np.full_like(XY, 2**63 - 1), "coordinates are beyond 2^53"),
        (np.where(XY > 0, np.inf, 0), "coordinates hold NaN or Inf"),
        (np.where(XY > 0, np.nan, 0), "coordinates hold NaN or Inf"),
    ],
)
def test_coordinates_in_every_layout(tmp_path: Path, coords: Any, says: str) -> None:
    np.savez(tmp_path / "a.npz", features=X, coords=coords)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["feats"], file["coords"] = X, coords
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["features"], file["coords"] = X, coords
    torch.save(torch.from_numpy(X), tmp_path / "d.pt")
    np.save(tmp_path / "d.index.npy", coords)
    for name in ("a.npz", "b.h5", "c.h5", "d.pt"):
        assert says in refused(tmp_path / name)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (b"\xff\xfe{", "bags_config.json: is not JSON"),
        (b"[" * 100_000, "bags_config.json: is not JSON (it is nested too deeply)"),
        (b'{"tile_um": NaN}', "tile_um is nan"),
        (b'{"tile_um": 1' + b"0" * 5000 + b"}", "bags_config.json: "),
        (b'{"extractor": ["uni", "v2"]}', "extractor is ['uni', 'v2'], not one name"),
    ],
)
def test_the_configuration_beside_a_slideflow_bag(tmp_path: Path, config: bytes, says: str) -> None:
    path = write.slideflow(tmp_path / "s.pt", X, XY)
    (tmp_path / "bags_config.json").write_bytes(config)
    assert says in refused(path, mpp=0.5)


@pytest.mark.parametrize("layout", ["auto", "clam", "npz", "npy", "clam-pt"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, layout: str) -> None:
    ending = {"npz": ".npz", "npy": ".npy", "clam-pt": ".pt"}.get(layout, ".h5")
    path = tmp_path / f"s{ending}"
    os.mkfifo(path)
    assert "is a pipe (FIFO), not a file" in refused(path, layout=layout)
    with pytest.raises(BagError, match=r"is a pipe \(FIFO\)"):
        BagStore(layout=layout).bag(Slide("s", "s", feature_path=path))


def test_numbers_that_share_a_hash(tmp_path: Path) -> None:
    keys = ((i * (2**61 - 1)).to_bytes(10, "little") for i in range(1, 20_001))
    items = b"".join(b"\x8a\x0a" + key + b"K\x01" for key in keys)
    with zipfile.ZipFile(tmp_path / "s.pt", "w") as file:
        file.writestr("archive/data.pkl", b"\x80\x02}(" + items + b"u.")
    assert "a pickle of too many or too deeply nested parts" in refused(tmp_path / "s.pt")


def test_devices_and_folders(tmp_path: Path) -> None:
    (tmp_path / "zero.npy").symlink_to("/dev/zero")
    assert "is a device, not a file" in refused(tmp_path / "zero.npy")
    (tmp_path / "folder.h5").mkdir()
    assert "is a folder, not a file" in refused(tmp_path / "folder.h5")


NO_RIGHT = "may not be read (permission denied); give yourself the right to read it (chmod u+r)"


@pytest.mark.parametrize("ending", WRITERS)
def test_a_file_that_may_not_be_opened(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"s{ending}"
    WRITERS[ending](path, X)

    def no(*arguments: Any, **options: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(h5py, "File", no)
    monkeypatch.setattr(Path, "open", no)
    assert NO_RIGHT in refused(path)


def cohort(folder: Path, n: int = 3) -> Cohort:
    for number in range(n):
        np.savez(folder / f"s{number}.npz", features=X)
    return Cohort.read(folder, cache=False)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "s1.npz: needs more memory than there is"),
        (
            ZeroDivisionError("by\x1b[2J zero"),
            r"cannot be read (ZeroDivisionError: by\x1b[2J zero)",
        ),
        (RecursionError("deep"), "cannot be read (RecursionError: deep)"),
        (OSError(5, "x"), "cannot be read (input/output error); check the disk"),
    ],
)
def test_whatever_is_raised_costs_one_slide(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    says: str,
) -> None:
    from foci.bags import layouts

    own = layouts.canonical

    def fail(stored: Any, path: Path, *rest: Any) -> Any:
        if path.stem == "s1":
            raise error
        return own(stored, path, *rest)

    slides = cohort(tmp_path)
    monkeypatch.setattr(layouts, "canonical", fail)
    stream = BagStream(slides.store, slides.slides)
    with caplog.at_level(logging.ERROR, logger="foci"):
        assert [bag.slide_id for bag in stream] == ["s0", "s2"]
    (skipped,) = stream.skipped
    assert says in skipped.reason
    unforeseen = not isinstance(error, (MemoryError, OSError))
    assert len(caplog.records) == unforeseen
    if unforeseen:
        assert caplog.records[0].name.startswith("foci.")
        assert type(error).__name__ in caplog.text
        assert "Traceback" in caplog.text
        assert "FOCI_LOG=FILE keeps the traceback" in skipped.reason


def test_a_config_that_is_read_as_before(tmp_path: Path) -> None:
    write.slideflow(tmp_path / "s.pt", X, XY + 128)
    (tmp_path / "bags_config.json").write_text(json.dumps({"tile_um": "20x", "extractor": "uni"}))
    bag = read_bag(tmp_path / "s.pt", mpp=0.25)
    assert (bag.patch_size, bag.provenance.encoder) == (256, "uni")
