"""All slides of a patient as one bag: the deciding slide is found, and the numbers are the same."""

from pathlib import Path

import numpy as np
import pytest

import foci
from foci import Cohort
from foci.audits.patients import deciding_slides
from foci.bags.cohort import CohortOptions
from foci.errors import CohortError
from foci.exports import export
from tests.audits.test_outputs import attending

FAST = {"n_boot": 50, "random_orders": 2, "null_maps": 19}


def write(folder: Path, patients: int = 24) -> dict[str, str]:
    """Three slides per patient, one of which carries the class; as files per slide and per patient.

    The slides of a patient overlap in their coordinates.
    """
    rng, carrying = np.random.default_rng(1), {}
    by_slide, by_patient = ["slide_id,case_id,label,split"], ["slide_id,case_id,label,split"]
    for place in ("slides", "patients"):
        (folder / place).mkdir()
    for i in range(patients):
        side, split = (1 if i % 2 else -1), ("train", "val", "test", "test")[i // 2 % 4]
        label, chosen = ("b" if side > 0 else "a"), int(rng.integers(3))
        features, coords = [], []
        for number in range(3):
            n = int(rng.integers(20, 40))
            x = rng.normal(scale=0.1, size=(n, 8)).astype(np.float32)
            x[:, 1] -= 0.15 * side
            if number == chosen:
                x[:5, 0], x[:5, 1] = 1.0, side
                carrying[f"p{i:02d}"] = f"p{i:02d}-{number}"
            grid = np.stack([np.arange(n) % 6, np.arange(n) // 6], axis=1) * 256
            np.savez(folder / "slides" / f"p{i:02d}-{number}.npz", features=x, coords=grid)
            by_slide.append(f"p{i:02d}-{number},p{i:02d},{label},{split}")
            features.append(x)
            coords.append(grid + np.array([number * 10_000, 0]))
        np.savez(folder / "patients" / f"p{i:02d}.npz", features=np.concatenate(features),
                 coords=np.concatenate(coords))  # fmt: skip
        by_patient.append(f"p{i:02d},p{i:02d},{label},{split}")
    (folder / "slides.csv").write_text("\n".join(by_slide) + "\n")
    (folder / "patients.csv").write_text("\n".join(by_patient) + "\n")
    return carrying


def test_the_deciding_slide_is_found_and_numbers_are_those_of_joined_files(tmp_path: Path) -> None:
    carrying, model = write(tmp_path), attending(slope=4.0)
    cohort = CohortOptions(
        features=tmp_path / "slides", labels=tmp_path / "slides.csv", bag="patient"
    ).read()
    assert len(cohort) == 24
    bag = cohort.bag("p00")
    assert bag.sources[0] == "p00-0"
    assert len(bag.sources) == len(bag)
    done = foci.audit(model, cohort, tmp_path / "audit", progress=False, **FAST)
    rows = deciding_slides(done, done.manifest.settings)
    found = {}
    for row in rows:
        if row["deciding_tiles"] is not None:
            found.setdefault(row["case_id"], []).append((row["deciding_tiles"], row["slide_id"]))
    right = [max(own)[1] == carrying[case] for case, own in found.items()]
    assert sum(right) >= 0.9 * len(done.slides)
    assert any("the deciding tiles lie on 1 of 3 slides" in note for note in done.manifest.notes)
    assert "tables/deciding_slides.csv" in done.manifest.files
    table = (tmp_path / "audit" / "tables" / "deciding_slides.csv").read_text().splitlines()
    assert table[0] == "case_id,slide_id,n_tiles,deciding_tiles"

    together = Cohort.read(tmp_path / "patients", tmp_path / "patients.csv", cache=False)
    one = foci.audit(model, together, tmp_path / "one", progress=False, **FAST)
    first, second = done.measured().tables["prediction"], one.measured().tables["prediction"]
    for name in ("msk", "stable", "decisive", "area", "aukc", "relevance_gain", "null_area"):
        assert np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True), name
    assert done.answers.map.answer == one.answers.map.answer

    # the slide and the place on it stay with every tile
    tiles = next(iter(done.tiles()))
    assert set(tiles.sources) == {f"{tiles.slide_id}-{number}" for number in range(3)}
    read = np.load(tmp_path / "slides" / f"{tiles.source(len(tiles) - 1)}.npz")
    assert tiles.on_slide[-1].tolist() == read["coords"][tiles.tiles[-1]].tolist()
    assert len({tuple(place) for place in tiles.coords.tolist()}) == len(tiles)
    export(done, tmp_path / "out", ["csv", "geojson"], [tiles.slide_id])
    exported = (tmp_path / "out" / f"{tiles.slide_id}.csv").read_text().splitlines()[1:]
    assert {line.split(",")[0] for line in exported} <= set(tiles.sources)


def test_slides_of_a_patient_must_agree(tmp_path: Path) -> None:
    write(tmp_path, patients=2)
    table = tmp_path / "slides.csv"
    table.write_text(table.read_text().replace("p00-1,p00,a,train", "p00-1,p00,b,train"))
    options = CohortOptions(features=tmp_path / "slides", labels=table, bag="patient")
    with pytest.raises(CohortError, match="patient p00: has slides with different labels"):
        options.read()
