"""Bags on demand: from memory, from the cache, or from their files."""

import gc
import os
import shutil
import subprocess
import sys
import weakref
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest

from foci.bags import Bag, BagCache, Provenance, Slide, read_bag
from foci.bags.store import BagStore, BagStream, default_root
from foci.errors import BagError
from foci.processes import preload, warm_context
from tests.makers import features as write


def slides(folder: Path, n: int, tiles: int = 12) -> list[Slide]:
    return [
        Slide(
            f"s{i}",
            f"c{i}",
            feature_path=write.trident(
                folder / f"s{i}.h5", write.features(tiles, seed=i), write.grid(tiles)
            ),
        )
        for i in range(n)
    ]


def test_holds_no_more_bags_than_stated(tmp_path: Path) -> None:
    store = BagStore(keep=3)
    alive: list[weakref.ref[Bag]] = []
    most = 0
    for bag in BagStream(store, slides(tmp_path, 12)):
        alive.append(weakref.ref(bag))
        del bag
        gc.collect()
        most = max(most, sum(ref() is not None for ref in alive))
    assert most <= 3


def test_recent_bags_come_from_memory(tmp_path: Path) -> None:
    store = BagStore(keep=2)
    first, second, third = slides(tmp_path, 3)
    a = store.bag(first)
    store.bag(second)
    assert store.bag(first) is a
    store.bag(third)
    assert store.bag(first) is a
    store.bag(second)
    store.bag(third)
    assert store.bag(first) is not a


def test_cached_bags_do_not_touch_the_features_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (slide,) = slides(tmp_path / "features", 1, tiles=30)
    cache = BagCache(tmp_path / "cache")
    want = BagStore(n_cap=5, cache=cache).bag(slide)
    monkeypatch.setattr("foci.bags.store.read_bag", lambda *a, **k: pytest.fail("read again"))
    monkeypatch.setattr(h5py, "File", lambda *a, **k: pytest.fail("opened again"))
    got = BagStore(n_cap=5, cache=cache).bag(slide)
    np.testing.assert_array_equal(got.features, want.features)
    np.testing.assert_array_equal(got.tiles, want.tiles)
    assert (len(got), got.n_total, got.patch_size) == (5, 30, 256)


TRACED = """
import sys
from pathlib import Path
from foci.bags import BagCache, Slide
from foci.bags.store import BagStore
features, cache = Path(sys.argv[1]), BagCache(sys.argv[2])
store = BagStore(n_cap=5, cache=cache)
for path in sorted(features.iterdir()):
    store.bag(Slide(path.stem, path.stem, feature_path=path))
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_cached_bag_costs_five_metadata_calls(tmp_path: Path) -> None:
    """On network storage each of them is a round trip."""
    folder, cache = tmp_path / "features", tmp_path / "cache"
    for slide in slides(folder, 8, tiles=30):
        BagStore(n_cap=5, cache=BagCache(cache)).bag(slide)
    log = tmp_path / "log"
    traced = ["strace", "-f", "-y", "-o", log, "-e", "trace=%file,fstat,newfstatat,statx"]
    subprocess.run([*traced, sys.executable, "-c", TRACED, folder, cache], check=True)
    calls = [line for line in log.read_text().splitlines() if "exited" not in line]
    entries = [path.name for path in cache.glob("*.safetensors")]
    of_bags = [line for line in calls if any(name in line for name in (*entries, f"{folder}/s"))]
    opening = len(entries)  # the cache adds up its entries once
    assert len(entries) == 8
    assert 0 < len(of_bags) - opening <= 5 * 8


def test_a_file_is_read_again_where_it_or_the_cap_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (slide,) = slides(tmp_path / "features", 1)
    assert slide.feature_path is not None
    cache, reads = BagCache(tmp_path / "cache"), list[Path]()
    monkeypatch.setattr(
        "foci.bags.store.read_bag", lambda path, **how: reads.append(path) or read_bag(path, **how)
    )
    for cap, n_reads in ((5, 1), (5, 1), (4, 2)):
        assert len(BagStore(n_cap=cap, cache=cache).bag(slide)) == cap
        assert len(reads) == n_reads
    os.utime(slide.feature_path, ns=(1, 1))
    BagStore(n_cap=5, cache=cache).bag(slide)
    assert len(reads) == 3
    write.trident(slide.feature_path, write.features(17, seed=9), write.grid(17))
    assert BagStore(n_cap=5, cache=cache).bag(slide).n_total == 17


def test_bad_slides_are_listed_and_the_others_survive(tmp_path: Path) -> None:
    good = slides(tmp_path, 4)
    assert good[1].feature_path is not None
    good[1].feature_path.write_bytes(b"cut")
    write.trident(tmp_path / "s3.h5", write.features(12, 9), write.grid())
    stream = BagStream(
        BagStore(), [*good, Slide("s4", "c4"), Slide("s5", "c5", feature_path=tmp_path / "no.h5")]
    )
    assert [bag.slide_id for bag in stream] == ["s0", "s2"]
    reasons = {s.slide_id: s.reason for s in stream.skipped}
    assert list(reasons) == ["s1", "s3", "s4", "s5"]
    assert "s1.h5: is not an HDF5 file" in reasons["s1"]
    assert "features are 9 wide, those of s0 6" in reasons["s3"]
    assert "has no feature file" in reasons["s4"]
    assert "no.h5: does not exist" in reasons["s5"]
    assert [bag.slide_id for bag in stream] == ["s0", "s2"]
    assert len(stream.skipped) == 4


def test_sidecar_change_invalidates_the_cache(tmp_path: Path) -> None:
    path = write.clam_h5(tmp_path, "s", write.features(), write.grid())
    slide = Slide("s", "c", feature_path=path)
    cache = BagCache(tmp_path / "cache")
    assert BagStore(n_cap=5, cache=cache).bag(slide).patch_size == 512
    assert len(entries_of(tmp_path / "cache")) == 1
    with h5py.File(tmp_path / "patches" / "s.h5", "a") as file:
        file["coords"].attrs["downsample"] = np.array([2.0, 2.0])
    assert BagStore(n_cap=5, cache=cache).bag(slide).patch_size == 1024


def test_forced_layout_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    (slide,) = slides(tmp_path, 1)
    with pytest.raises(
        BagError, match=r"s0\.h5: has no dataset 'feats' \(it holds coords, features"
    ):
        BagStore(layout="stamp").bag(slide)


def test_a_model_decides_which_width_is_right(tmp_path: Path) -> None:
    wide, *others = slides(tmp_path, 3)
    assert wide.feature_path is not None
    write.trident(wide.feature_path, write.features(12, 9), write.grid())
    first_decides = BagStream(BagStore(), [wide, *others])
    assert [bag.slide_id for bag in first_decides] == ["s0"]
    store = BagStore()
    store.bag(wide)
    stream = BagStream(store.for_model(6), [wide, *others])
    assert [bag.slide_id for bag in stream] == ["s1", "s2"]
    assert "s0.h5: features are 9 wide, the model reads 6" in stream.skipped[0].reason
    assert store.bag(wide).width == 9


def test_what_is_read_beside_a_file(tmp_path: Path) -> None:
    path = write.clam_h5(tmp_path, "s", write.features(), write.grid())
    assert tmp_path / "patches" / "s.h5" in BagStore().read_beside(path)
    assert BagStore(layout="npz").read_beside(tmp_path / "s.npz") == ()


# The cache returns what was stored, notices changes, and survives rough company.


def same(a: Bag, b: Bag) -> bool:
    arrays = (("features", "coords", "kept"), (a, b))
    for name in arrays[0]:
        left, right = getattr(a, name), getattr(b, name)
        if (left is None) != (right is None) or (
            left is not None and (left.dtype != right.dtype or not np.array_equal(left, right))
        ):
            return False
    facts = ("slide_id", "unit", "patch_size", "patch_size_inferred", "n_in_file", "provenance")
    return all(getattr(a, name) == getattr(b, name) for name in facts)


FULL = Bag(
    "s",
    write.features(),
    write.grid().astype(np.int64),
    "um",
    256,
    True,
    np.arange(12, dtype=np.int64) * 3,
    99,
    Provenance("stamp", Path("a/s.h5"), "uni2", ("a note",)),
)
HALF = Bag("h", FULL.features.astype(np.float16).astype(np.float32), provenance=FULL.provenance)
HUGE = Bag("g", FULL.features * np.float32(1e30), provenance=FULL.provenance)


@pytest.mark.parametrize("bag", [FULL, HALF, HUGE], ids=["full", "half", "huge"])
def test_round_trip_is_exact(tmp_path: Path, bag: Bag) -> None:
    cache = BagCache(tmp_path)
    cache.put("k", bag)
    got = cache.get("k")
    assert got is not None
    assert same(got, bag)
    assert [p.name for p in tmp_path.glob("*.safetensors")] == ["k.safetensors"]


def test_half_precision_features_take_half_the_room(tmp_path: Path) -> None:
    cache = BagCache(tmp_path)
    big = Bag("b", np.ones((500, 64), np.float32), provenance=FULL.provenance)
    cache.put("k", big)
    assert (tmp_path / "k.safetensors").stat().st_size < 500 * 64 * 2 + 2000


def test_absent_and_damaged_entries_count_as_absent(tmp_path: Path) -> None:
    cache = BagCache(tmp_path)
    assert cache.get("k") is None
    cache.put("k", FULL)
    path = tmp_path / "k.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    assert cache.get("k") is None
    cache.put("k", FULL)
    assert cache.get("k") is not None


def test_one_flipped_bit_anywhere_makes_an_entry_absent(tmp_path: Path) -> None:
    cache = BagCache(tmp_path)
    cache.put("k", FULL)
    path = tmp_path / "k.safetensors"
    whole = path.read_bytes()
    start = len(whole) - FULL.features.nbytes - 2 * 12 * 8 - 12 * 8  # where the arrays begin
    places = [*range(start, len(whole), 37), len(whole) - 1, *range(8, start, 5)]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        got = cache.get("k")
        assert got is None or same(got, FULL), place  # a bit of white space harms nothing
        assert got is None or place < start, place


def test_an_entry_with_another_content_is_not_used(tmp_path: Path) -> None:
    from safetensors import safe_open
    from safetensors.numpy import save_file

    cache = BagCache(tmp_path)
    cache.put("k", FULL)
    path = tmp_path / "k.safetensors"
    with safe_open(path, framework="np") as file:
        entry = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(arrays, path, entry)
    assert cache.get("k") is not None
    for changed in (
        {**arrays, "coords": arrays["coords"] + 1},
        {name: array for name, array in arrays.items() if name != "kept"},
        {**arrays, "features": arrays["features"].reshape(-1, 2)},
    ):
        save_file(changed, path, entry)
        assert cache.get("k") is None
    save_file(arrays, path, {"entry": entry["entry"].replace("256", "512")})
    assert cache.get("k") is None
    save_file(arrays, path, {"bag": "{}"})  # without a checksum
    assert cache.get("k") is None


def test_a_damaged_entry_is_read_again_from_its_source(tmp_path: Path) -> None:
    source = tmp_path / "s.h5"
    write.trident(source, write.features(), write.grid())
    slide = Slide("s", "s", feature_path=source)
    cache = BagCache(tmp_path / "cache")
    bag = BagStore(n_cap=2, cache=cache).bag(slide)
    (entry,) = (tmp_path / "cache").glob("*.safetensors")
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-4] + bytes(4))
    assert same(BagStore(n_cap=2, cache=cache).bag(slide), bag)
    assert entry.read_bytes() == whole


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    (tmp_path / ".writing-abc").write_bytes(b"half an entry")
    BagCache(tmp_path)
    assert not (tmp_path / ".writing-abc").exists()


def test_oldest_entries_go_when_the_limit_is_passed(tmp_path: Path) -> None:
    cache = BagCache(tmp_path)
    for age, key in enumerate(("new", "middle", "old")):
        cache.put(key, FULL)
        os.utime(tmp_path / f"{key}.safetensors", ns=(1000 - age, 1000 - age))
    size = (tmp_path / "new.safetensors").stat().st_size
    BagCache(tmp_path, limit_gb=2.5 * size / 1e9)
    assert sorted(p.stem for p in tmp_path.glob("*.safetensors")) == ["middle", "new"]


def entries_of(folder: Path) -> list[int]:
    return [path.stat().st_size for path in folder.glob("*.safetensors")]


def test_the_limit_holds_while_entries_are_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    BagCache(tmp_path / "one").put("k", FULL)
    (size,) = entries_of(tmp_path / "one")
    limit = 4.5 * size
    caches = [BagCache(tmp_path / "cache", limit_gb=limit / 1e9) for _ in range(2)]
    for number in range(20):
        caches[number % 2].put(f"k{number}", FULL)  # as two processes would
        assert sum(entries_of(tmp_path / "cache")) <= limit
        assert caches[0].get(f"k{number}") is not None
    assert len(entries_of(tmp_path / "cache")) == 4
    (tmp_path / "cache" / "size").write_text("nonsense")
    caches[0].put("more", FULL)
    assert sum(entries_of(tmp_path / "cache")) <= limit
    tiny = BagCache(tmp_path / "tiny", limit_gb=0.5 * size / 1e9)
    tiny.put("k", FULL)
    assert entries_of(tmp_path / "tiny") == []
    told = [text for text in caplog.messages if text.startswith("bags are cached in ")]
    assert len(told) == 4  # once for each


@pytest.mark.parametrize(("tiles", "kept"), [(10, False), (11, True)])
def test_a_file_that_is_nearly_as_small_as_its_entry_is_not_cached(
    tmp_path: Path, tiles: int, kept: bool
) -> None:
    (slide,) = slides(tmp_path / "features", 1, tiles=tiles)
    BagStore(n_cap=5, cache=BagCache(tmp_path / "cache")).bag(slide)
    assert (len(entries_of(tmp_path / "cache")) == 1) is kept


def test_an_unwritable_folder_only_costs_the_speed_up(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    cache = BagCache(blocked / "cache")
    cache.put("k", FULL)
    assert cache.get("k") is None


def test_default_root_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOCI_CACHE", "/somewhere")
    assert default_root() == Path("/somewhere")
    monkeypatch.delenv("FOCI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_root() == Path("/xdg/foci/bags")


def hammer(root: str, worker: int) -> int:
    cache = BagCache(root)
    seen = 0
    for _ in range(40):
        cache.put("k", FULL)
        got = cache.get("k")
        seen += got is not None and same(got, FULL)
    return seen


def test_several_processes_write_and_read_one_entry(tmp_path: Path) -> None:
    preload()
    with ProcessPoolExecutor(2, mp_context=warm_context()) as pool:
        results = list(pool.map(hammer, [str(tmp_path)] * 2, range(2)))
    assert results == [40, 40]
    assert [p.name for p in tmp_path.glob("*.safetensors")] == ["k.safetensors"]
