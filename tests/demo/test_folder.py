"""The demo folder: deterministic, whole or absent, in TRIDENT's layout."""

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from foci import Cohort, demo
from foci.bags import read_bag
from foci.demo.cohort import KINDS, PlantedSlide
from foci.demo.folder import Parameters
from foci.errors import FociError

PARAMETERS = Parameters(seed=3, slides=24, classes=2)
Truth = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo.make(tmp_path_factory.mktemp("demo") / "cohort", slides=24, seed=3)


@pytest.fixture(scope="module")
def slides() -> list[PlantedSlide]:
    return list(PARAMETERS.planted(PARAMETERS.plans()))


@pytest.fixture(scope="module")
def truth(folder: Path) -> Truth:
    table = pq.read_table(folder / "tile_truth.parquet")
    assert table.column_names == ["slide_id", "tile", "x", "y", "tissue", "witness"]
    return {name: np.array(column) for name, column in table.to_pydict().items()}


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


def test_features_have_every_attribute_of_trident(folder: Path, slides: list[PlantedSlide]) -> None:
    names = {path.stem for path in (folder / "features_demo").iterdir()}
    assert names == {slide.plan.slide_id for slide in slides}
    assert {slide.plan.magnification for slide in slides} == {20, 40}
    for slide in slides:
        plan, path = slide.plan, folder / "features_demo" / f"{slide.plan.slide_id}.h5"
        with h5py.File(path) as file:
            assert sorted(file) == ["coords", "features"]
            features, coords = file["features"], file["coords"]
            np.testing.assert_array_equal(features[()], slide.features)
            np.testing.assert_array_equal(coords[()], slide.coords)
            assert (features.dtype, features.chunks) == (np.float32, (1, 64))
            assert (coords.dtype, coords.chunks) == (np.int64, (1, 2))
            named = {"name": plan.slide_id, "savetodir": "."}
            assert dict(features.attrs) == {**named, "encoder": "foci-demo"}
            assert dict(coords.attrs) == {
                **named,
                "patch_size": 256,
                "patch_size_level0": 256 * plan.magnification // 20,
                "level0_magnification": plan.magnification,
                "target_magnification": 20,
                "overlap": 0,
                "level0_width": slide.size[0],
                "level0_height": slide.size[1],
            }
        bag = read_bag(path)
        assert (bag.provenance.layout, bag.patch_size) == ("trident", slide.patch_size)
        assert 120 <= len(bag) <= 600


def test_the_answer_key_is_what_was_planted(slides: list[PlantedSlide], truth: Truth) -> None:
    assert len(truth["tile"]) == sum(len(slide.coords) for slide in slides)
    for slide in slides:
        own = {name: column[truth["slide_id"] == slide.plan.slide_id] for name, column in
               truth.items()}  # fmt: skip
        assert own["tile"].tolist() == list(range(len(slide.coords)))
        np.testing.assert_array_equal(np.stack([own["x"], own["y"]], axis=1), slide.coords)
        np.testing.assert_array_equal(own["witness"], slide.tissue.witness)
        assert [KINDS.index(name) for name in own["tissue"]] == slide.tissue.kind.tolist()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_cohort_table_is_tidy(folder: Path, tmp_path: Path, classes: int) -> None:
    made = folder if classes == 2 else demo.make(tmp_path / "d", slides=24, seed=3, classes=classes)
    rows = [
        f"{p.slide_id},{p.case_id},{'ABC'[p.label]}-type,{p.split},site-{p.site + 1}"
        for p in replace(PARAMETERS, classes=classes).plans()
    ]
    text = "\n".join(["slide_id,case_id,label,split,site", *rows]) + "\n"
    assert (made / "cohort.csv").read_bytes() == text.encode()
    cohort = Cohort.read(made / "features_demo", made / "cohort.csv", cache=False)
    assert cohort.classes == ("A-type", "B-type", "C-type")[:classes]


def test_the_folder_counts_and_says_that_it_is_synthetic(folder: Path) -> None:
    plans, text = PARAMETERS.plans(), (folder / "README.md").read_text()
    labels, splits = Counter(p.label for p in plans), Counter(p.split for p in plans)
    assert "**These data are synthetic.**" in text
    assert "(seed 3)" in text
    assert (
        f"24 slides of {len({p.case_id for p in plans})} imaginary patients; {labels[0]} A-type, "
        f"{labels[1]} B-type; {splits['train']} train, {splits['val']} val, {splits['test']} test."
    ) in text
    facts = {"seed": 3, "slides": 24, "classes": 2, "version": 1}
    assert json.loads((folder / "demo.json").read_text()) == facts


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

    monkeypatch.setattr("foci.demo.folder.write_csv", stop)
    with pytest.raises(KeyboardInterrupt):
        demo.make(tmp_path / "d", slides=12)
    assert list(tmp_path.iterdir()) == []


def test_a_cohort_that_another_process_made_meanwhile_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beaten(*arguments: object) -> None:
        monkeypatch.undo()
        demo.make(tmp_path / "d", slides=12)

    monkeypatch.setattr("foci.demo.folder.write_csv", beaten)
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


def test_impossible_parameters(tmp_path: Path) -> None:
    with pytest.raises(FociError, match="seed=-1: is negative"):
        demo.make(tmp_path / "d", seed=-1)
    with pytest.raises(FociError, match="slides=5: is too few for 2 classes"):
        demo.make(tmp_path / "d", slides=5)
    assert not (tmp_path / "d").exists()
