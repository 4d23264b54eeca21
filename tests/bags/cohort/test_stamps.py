"""Feature files are known by name, size and time of change, sidecars included."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foci import Cohort
from foci.bags import Slide
from foci.bags.cohort import stamps, what_is_read
from foci.bags.store import BagStore
from tests.makers import features as write


def files(folder: Path, shift: float = 0.0) -> Cohort:
    for i, name in enumerate(("a", "b")):
        x = np.full((3 + i, 4), shift, np.float32)
        write.trident(folder / f"{name}.h5", x, write.grid(3 + i))
        os.utime(folder / f"{name}.h5", ns=(5, 100 + i))
    return Cohort.read(folder, cache=False)


def test_name_size_and_time_of_every_slide(tmp_path: Path) -> None:
    cohort = files(tmp_path)
    sizes = [(tmp_path / name).stat().st_size for name in ("a.h5", "b.h5")]
    assert stamps(cohort) == [[["a.h5", sizes[0], 100]], [["b.h5", sizes[1], 101]]]


def test_moved_files_are_the_same_and_changed_ones_are_not(tmp_path: Path) -> None:
    here, moved = files(tmp_path / "here"), files(tmp_path / "moved")
    assert stamps(here) == stamps(moved)
    os.utime(tmp_path / "moved" / "b.h5", ns=(5, 102))
    assert stamps(here)[0] == stamps(moved)[0]
    assert stamps(here)[1] != stamps(moved)[1]


def test_a_missing_file_has_a_name_and_a_slide_without_one_nothing(tmp_path: Path) -> None:
    slides = (Slide("a", "a", feature_path=tmp_path / "a.h5"), Slide("b", "b"))
    assert stamps(Cohort(slides)) == [[["a.h5", None, None]], []]


def test_files_beside_a_feature_file_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = files(tmp_path)
    (tmp_path / "index.npz").write_bytes(b"12345")
    os.utime(tmp_path / "index.npz", ns=(5, 7))
    monkeypatch.setattr(BagStore, "read_beside", lambda store, path: (tmp_path / "index.npz",))
    assert [own[1] for own in stamps(cohort)] == [["index.npz", 5, 7]] * 2


def test_what_is_read_differs_with_slides_classes_and_settings(tmp_path: Path) -> None:
    cohort = files(tmp_path)
    store = cohort.store
    others = [
        replace(cohort, slides=cohort.slides[:1]),
        replace(cohort, slides=(replace(cohort.slides[0], label="a"), cohort.slides[1])),
        replace(cohort, classes=("a", "b")),
        *(
            replace(cohort, store=BagStore(**{"n_cap": store.n_cap, **change}))
            for change in ({"n_cap": 2}, {"layout": "trident"}, {"mpp": 0.5})
        ),
    ]
    found = [str(what_is_read(each)) for each in (cohort, *others)]
    assert len(set(found)) == len(found) == 7
    assert str(what_is_read(files(tmp_path))) == found[0]
