"""The embedded cohort on disk: deterministic, whole or absent, in TRIDENT's layout."""

import hashlib
import json
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from foci import Cohort, demo
from foci.bags import read_bag
from foci.errors import FociError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo.make(tmp_path_factory.mktemp("demo") / "cohort", slides=24, seed=3)


def digest(folder: Path) -> dict[str, str]:
    """Bytes of the tables, and the arrays of the feature files."""
    found = {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.is_file()
    }
    for path in sorted((folder / "features_demo").iterdir()):
        with h5py.File(path) as file:
            content = file["features"][()].tobytes() + file["coords"][()].tobytes()
        found[path.name] = hashlib.sha256(content).hexdigest()
    return found


def test_same_seed_same_data(folder: Path, tmp_path: Path) -> None:
    again = demo.make(tmp_path / "again", slides=24, seed=3)
    assert digest(again) == digest(folder)
    other = demo.make(tmp_path / "other", slides=24, seed=4)
    assert digest(other)["tile_truth.parquet"] != digest(folder)["tile_truth.parquet"]


def test_features_are_as_trident_writes_them(folder: Path) -> None:
    for path in (folder / "features_demo").iterdir():
        with h5py.File(path) as file:
            attributes = dict(file["coords"].attrs)
            assert file["features"].dtype == np.float32
            assert file["features"].shape[1] == 64
            assert file["features"].attrs["encoder"] == "foci-demo"
            assert attributes["name"] == path.stem
            size = attributes["patch_size_level0"]
            assert size == 256 * attributes["level0_magnification"] // 20
            corner = file["coords"][()].max(axis=0) + size
            assert (corner <= [attributes["level0_width"], attributes["level0_height"]]).all()
        bag = read_bag(path)
        assert (bag.provenance.layout, bag.patch_size) == ("trident", size)
        assert 120 <= len(bag) <= 600


def test_truth_is_aligned_with_the_features(folder: Path) -> None:
    truth = pq.read_table(folder / "tile_truth.parquet").to_pydict()
    slides = np.array(truth["slide_id"])
    for path in (folder / "features_demo").iterdir():
        own = slides == path.stem
        bag = read_bag(path)
        assert np.array(truth["tile"])[own].tolist() == list(range(len(bag)))
        places = np.stack([np.array(truth["x"])[own], np.array(truth["y"])[own]], axis=1)
        np.testing.assert_array_equal(places, bag.coords)


def test_witnesses_are_one_connected_cluster_inside_the_tumour(folder: Path) -> None:
    truth = pq.read_table(folder / "tile_truth.parquet").to_pydict()
    slides, witness = np.array(truth["slide_id"]), np.array(truth["witness"])
    for path in (folder / "features_demo").iterdir():
        bag = read_bag(path)
        own = np.flatnonzero(slides == path.stem)
        marked = own[witness[own]]
        assert {truth["tissue"][i] for i in marked} == {"tumour"}
        assert max(3, 0.02 * len(own)) <= len(marked) <= max(3, 0.06 * len(own))
        assert bag.patch_size is not None
        cells = {(truth["x"][i] // bag.patch_size, truth["y"][i] // bag.patch_size) for i in marked}
        reached, waiting = set(), [next(iter(cells))]
        while waiting:
            x, y = waiting.pop()
            if (x, y) in cells - reached:
                reached.add((x, y))
                waiting += [(x + i, y + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        assert reached == cells


def test_only_witnesses_tell_the_class(folder: Path) -> None:
    """The class directions point apart in the witnesses and nowhere else."""
    cohort = Cohort.read(folder / "features_demo", folder / "cohort.csv", cache=False, keep=99)
    truth = pq.read_table(folder / "tile_truth.parquet").to_pydict()
    slides, witness = np.array(truth["slide_id"]), np.array(truth["witness"])
    means: dict[tuple[int, bool], list[np.ndarray]] = {}
    for bag in cohort.bags():
        marks = witness[slides == bag.slide_id]
        for planted in (True, False):
            key = (cohort.target(bag.slide_id), planted)
            means.setdefault(key, []).append(bag.features[marks == planted].mean(axis=0))
    gap = {
        planted: np.linalg.norm(np.mean(means[0, planted], 0) - np.mean(means[1, planted], 0))
        for planted in (True, False)
    }
    assert gap[True] > 2.5
    assert gap[False] < 1.0


@pytest.mark.parametrize("classes", [2, 3])
def test_patients_classes_and_sites(tmp_path: Path, classes: int) -> None:
    made = demo.make(tmp_path / "d", slides=60, classes=classes)
    cohort = Cohort.read(made / "features_demo", made / "cohort.csv", cache=False)
    assert len(cohort) == 60
    assert cohort.classes == ("A-type", "B-type", "C-type")[:classes]
    assert {split: len(counts) for split, counts in cohort.counts().items()} == dict.fromkeys(
        ("train", "val", "test"), classes
    )
    cases = [slide.case_id for slide in cohort]
    assert 0.1 <= 1 - len(set(cases)) / len(cases) <= 0.25
    for label in cohort.classes:
        assert {s.site for s in cohort if s.label == label} == {"site-1", "site-2"}


def test_an_existing_demo_is_left_alone_and_anything_else_is_refused(tmp_path: Path) -> None:
    made = demo.make(tmp_path / "d", slides=12)
    before = {p: p.stat().st_mtime_ns for p in made.rglob("*")}
    assert demo.make(str(made), slides=12) == made
    assert {p: p.stat().st_mtime_ns for p in made.rglob("*")} == before
    with pytest.raises(FociError, match="holds a demo with other parameters"):
        demo.make(made, slides=16)
    next((made / "features_demo").iterdir()).unlink()
    with pytest.raises(FociError, match="is a demo with 1 missing files"):
        demo.make(made, slides=12)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(FociError, match="mine: exists and is not a FOCI demo; choose another"):
        demo.make(tmp_path / "mine")


def test_an_interrupted_making_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("foci.demo.folder.write_truth", stop)
    with pytest.raises(KeyboardInterrupt):
        demo.make(tmp_path / "d", slides=12)
    assert list(tmp_path.iterdir()) == []


def test_a_cohort_that_another_process_made_meanwhile_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beaten(*arguments: object) -> None:
        monkeypatch.undo()
        demo.make(tmp_path / "d", slides=12)

    monkeypatch.setattr("foci.demo.folder.write_truth", beaten)
    assert demo.make(tmp_path / "d", slides=12) == tmp_path / "d"
    assert [p.name for p in tmp_path.iterdir()] == ["d"]
    assert (tmp_path / "d" / "tile_truth.parquet").is_file()


def test_an_empty_folder_is_filled_and_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (demo.make(tmp_path / "empty", slides=8) / "cohort.csv").is_file()
    (tmp_path / "file").touch()
    with pytest.raises(FociError, match="file: exists and is not a FOCI demo"):
        demo.make(tmp_path / "file", slides=8)
    with pytest.raises(FociError, match=r"d: cannot be written \(.+\); choose another place"):
        demo.make(tmp_path / "file" / "d", slides=8)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"slides": 5}, "slides=5: is too few for 2 classes"),
        ({"classes": 4}, "classes=4: is not possible"),
        ({"seed": -1}, "seed=-1: is negative"),
    ],
)
def test_impossible_parameters(tmp_path: Path, settings: dict[str, int], says: str) -> None:
    with pytest.raises(FociError, match=says):
        demo.make(tmp_path / "d", **settings)  # type: ignore[arg-type]
    assert not (tmp_path / "d").exists()


def test_the_folder_says_that_it_is_synthetic(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    assert "These data are synthetic" in text
    assert json.loads((folder / "demo.json").read_text())["slides"] == 24
