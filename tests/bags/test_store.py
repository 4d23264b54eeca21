"""Streaming: a bounded number of bags in memory, bad slides set aside."""

import gc
import weakref
from pathlib import Path

import h5py
import numpy as np
import pytest

from foci.bags import Bag, BagCache, Slide
from foci.bags.store import BagStore, BagStream
from foci.errors import BagError
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


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    (slide,) = slides(tmp_path / "features", 1)
    cache = BagCache(tmp_path / "cache")
    BagStore(cache=cache).bag(slide)
    assert slide.feature_path is not None
    write.trident(slide.feature_path, write.features(7, seed=9), write.grid(7))
    assert len(BagStore(cache=cache).bag(slide)) == 7


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
    assert BagStore(cache=cache).bag(slide).patch_size == 512
    with h5py.File(tmp_path / "patches" / "s.h5", "a") as file:
        file["coords"].attrs["downsample"] = np.array([2.0, 2.0])
    assert BagStore(cache=cache).bag(slide).patch_size == 1024


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
