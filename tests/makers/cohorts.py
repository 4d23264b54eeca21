"""Small cohorts in a folder: feature files, ``labels.csv``, and evidence that is known."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foci.bags import Cohort
from tests.makers import features as write

D_IN, N_CAP = 8, 9
D = 32
TEST_TILES = (5, 1, 12, 7, 8)
"""Tiles of the audited slides; one has a single tile, one more than the cap."""


class Row(NamedTuple):
    """A slide to write."""

    name: str
    x: NDArray[np.float32]
    case: str
    label: str
    split: str


def write_cohort(folder: Path, rows: Iterable[Row]) -> Path:
    """TRIDENT files in ``features``, and ``labels.csv``."""
    lines = ["slide_id,case_id,label,split"]
    for row in rows:
        write.trident(folder / "features" / f"{row.name}.h5", row.x, write.grid(len(row.x)))
        lines.append(f"{row.name},{row.case},{row.label},{row.split}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


def read(folder: Path, *, labels: bool = True, n_cap: int | None = N_CAP, **more: Any) -> Cohort:
    """The cohort of a folder, without a cache."""
    table = folder / "labels.csv" if labels else None
    return Cohort.read(folder / "features", table, n_cap=n_cap, cache=False, **more)


def make_files(folder: Path, splits: str = "train val test", d_in: int = D_IN) -> Path:
    """6 slides of train, 3 of val, 5 of test, two of one patient; read with a cap of 9 tiles."""
    return write_cohort(folder, _of_all_sizes(splits.split(), d_in))


def _of_all_sizes(splits: list[str], d_in: int) -> Iterator[Row]:
    rng = np.random.default_rng(3)
    sizes = {"train": (4, 6, 5, 9, 4, 6), "val": (5, 7, 6), "test": TEST_TILES}
    every = [(split, n) for split, tiles in sizes.items() for n in tiles]
    for i, (split, n) in enumerate(every):
        x = rng.normal(size=(n, d_in)).astype(np.float32)
        x[0, i % 2] += 4
        yield Row(f"s{i:02d}", x, f"c{min(i, 12)}", "ab"[i % 2], split if split in splits else "")


def planted(folder: Path, slides: int = 12, d: int = D, tiles: tuple[int, int] = (4, 15)) -> Cohort:
    """Bags of noise; the first two tiles of a bag of class c carry 3 in column c."""
    rng = np.random.default_rng(7)

    def rows() -> Iterator[Row]:
        for i in range(slides):
            n, label = int(rng.integers(*tiles)), i % 2
            x = 0.1 * rng.standard_normal((n, d)).astype(np.float32)
            x[:2, label] += 3.0
            split = "val" if i >= 2 * slides // 3 else "train"
            yield Row(f"s{i}", x, f"c{i}", "ab"[label], split)

    return read(write_cohort(folder, rows()), n_cap=1024, keep=64)


def toy_cohort(folder: Path, n: int = 24, *, seed: int = 0, classes: str = "ab") -> Cohort:
    """Learnt in seconds: the class shows in one tile of every bag."""
    rng = np.random.default_rng(seed)

    def rows() -> Iterator[Row]:
        for i in range(n):
            label = i % len(classes)
            x = rng.normal(size=(9 - i % 3, D_IN)).astype(np.float32)
            x[rng.integers(len(x)), label] += 6
            split = "train" if i < n // 2 else "val" if i < 3 * n // 4 else "test"
            yield Row(f"s{i:02d}", x, f"c{i}", classes[label], split)

    return read(write_cohort(folder, rows()), n_cap=1024, keep=100)
