"""An epoch over a cached cohort against reading the HDF5 files again.

Bags of 12,000 x 1,536 in TRIDENT's layout (one chunk per tile), pre-filtered to 1,024 tiles.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import h5py
import numpy as np

from foci.bags import N_CAP, BagCache, Slide
from foci.bags.store import BagStore, BagStream
from timing import seconds

BAGS, TILES, WIDTH = 4, 12_000, 1_536


def main() -> None:
    """Print both times and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        slides = [write(Path(folder), i) for i in range(BAGS)]
        cache = BagCache(Path(folder) / "cache")

        def epoch(cache: BagCache | None) -> None:
            stream = BagStream(BagStore(n_cap=N_CAP, cache=cache, keep=1), slides)
            assert sum(len(bag) for bag in stream) == BAGS * N_CAP

        reading, cached = seconds(lambda: epoch(None), 3), seconds(lambda: epoch(cache), 9)
    print(f"{BAGS} bags of {TILES} x {WIDTH}, chunks (1, {WIDTH}), capped at 1024 tiles")
    print(f"  reading the HDF5 files  {reading / BAGS * 1e3:8.1f} ms per bag")
    print(f"  from the cache          {cached / BAGS * 1e3:8.1f} ms per bag")
    print(f"  ratio                   {reading / cached:8.1f}  (must be at least 10)")


def write(folder: Path, index: int) -> Slide:
    """One synthetic slide."""
    rng = np.random.default_rng(index)
    path = folder / f"s{index}.h5"
    with h5py.File(path, "w") as file:
        x = rng.standard_normal((TILES, WIDTH), dtype=np.float32)
        file.create_dataset("features", data=x, chunks=(1, WIDTH))
        cells = np.arange(TILES)
        coords = file.create_dataset("coords", data=np.stack([cells % 100, cells // 100], 1) * 256)
        coords.attrs["patch_size_level0"] = 256
    return Slide(path.stem, path.stem, feature_path=path)


if __name__ == "__main__":
    main()
