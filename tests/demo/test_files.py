"""The files of the demo, read back with the plain libraries."""

from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from foci.demo.cohort import KINDS, PlannedSlide, PlantedSlide, mix_palette, plant
from foci.demo.folder import truth_rows, write_cohort, write_features, write_truth

PLAN = PlannedSlide("demo-0001-1", "demo-0001", 1, "test", 0, hard=False, magnification=40)


@pytest.fixture(scope="module")
def slide() -> PlantedSlide:
    palette = mix_palette(np.random.default_rng(0), classes=2, sites=2)
    return plant(np.random.default_rng(1), PLAN, palette)


def test_every_attribute_of_trident(slide: PlantedSlide, tmp_path: Path) -> None:
    write_features(slide, tmp_path / "s.h5")
    with h5py.File(tmp_path / "s.h5") as file:
        assert sorted(file) == ["coords", "features"]
        features, coords = file["features"], file["coords"]
        np.testing.assert_array_equal(features[()], slide.features)
        np.testing.assert_array_equal(coords[()], slide.coords)
        assert (features.dtype, features.chunks) == (np.float32, (1, 64))
        assert (coords.dtype, coords.chunks) == (np.int64, (1, 2))
        assert dict(features.attrs) == {
            "name": "demo-0001-1",
            "savetodir": ".",
            "encoder": "foci-demo",
        }
        assert dict(coords.attrs) == {
            "name": "demo-0001-1",
            "savetodir": ".",
            "patch_size": 256,
            "patch_size_level0": 512,
            "level0_magnification": 40,
            "target_magnification": 20,
            "overlap": 0,
            "level0_width": slide.size[0],
            "level0_height": slide.size[1],
        }


def test_the_cohort_table_is_tidy(tmp_path: Path) -> None:
    write_cohort([PLAN], tmp_path / "cohort.csv")
    assert (tmp_path / "cohort.csv").read_bytes() == (
        b"slide_id,case_id,label,split,site\ndemo-0001-1,demo-0001,B-type,test,site-1\n"
    )


def test_the_answer_key(slide: PlantedSlide, tmp_path: Path) -> None:
    write_truth([truth_rows(slide), truth_rows(slide)], tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.column_names == ["slide_id", "tile", "x", "y", "tissue", "witness"]
    n = len(slide.coords)
    assert table.num_rows == 2 * n
    rows = table.slice(n).to_pydict()
    assert rows["tile"] == list(range(n))
    assert list(zip(rows["x"], rows["y"], strict=True)) == [tuple(c) for c in slide.coords.tolist()]
    assert rows["witness"] == slide.tissue.witness.tolist()
    assert [KINDS.index(name) for name in rows["tissue"]] == slide.tissue.kind.tolist()
