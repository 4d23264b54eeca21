"""Bags with known witnesses, made of real histology tiles.

The source is one HDF5 file of tiles (``effnet_lite0`` features, ``class``, ``prototype``: tiles of
one prototype are augmentations of one source image); it is given by ``--data`` and never copied
here. A positive bag holds 0.5 to 3 % squamous tiles among normal ones and a random share of
adenocarcinoma; a negative bag holds none. Source images are disjoint between the splits.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.random import Generator
from numpy.typing import NDArray

from foci.bags import Cohort, Slide

SPLITS = {"train": (300, 0.6), "val": (60, 0.15), "test": (100, 0.25)}
NORMAL, ADENO, WITNESS = "lung_n", "lung_aca", "lung_scc"
Pools = dict[str, NDArray[np.int64]]


def make_cohort(source: Path, out: Path, seed: int = 0) -> Path:
    """Write ``features/*.npz``, ``cohort.csv`` and ``truth.parquet``."""
    (out / "features").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    with h5py.File(source) as file:
        x = file["effnet_lite0"][()].astype(np.float32)
        kind, image = file["class"].asstr()[()], file["prototype"][()]
    pools = share_out(kind, image, rng)
    slides, truth = [], []
    for split, (count, _) in SPLITS.items():
        for number in range(count):
            name, positive = f"{split}-{number:03d}", number % 2 == 1
            tiles, witness = draw_bag(pools[split], positive, rng)
            np.savez(out / "features" / f"{name}.npz", features=x[tiles])
            slides.append(Slide(name, name, "scc" if positive else "no-scc", split))
            truth += [{"slide_id": name, "tile": i, "witness": bool(w)}
                      for i, w in enumerate(witness)]  # fmt: skip
    Cohort(tuple(slides)).to_csv(out / "cohort.csv")
    pq.write_table(pa.Table.from_pylist(truth), out / "truth.parquet")
    return out


def share_out(kind: NDArray[np.str_], image: NDArray[np.int64], rng: Generator) -> dict[str, Pools]:
    """Tiles of every class for every split; a source image is in one split only."""
    pools: dict[str, Pools] = {split: {} for split in SPLITS}
    for name in (NORMAL, ADENO, WITNESS):
        own = np.flatnonzero(kind == name)
        images = rng.permutation(np.unique(image[own]))
        cuts = np.cumsum([share for _, share in SPLITS.values()][:-1]) * len(images)
        for split, part in zip(SPLITS, np.split(images, cuts.astype(int)), strict=True):
            pools[split][name] = own[np.isin(image[own], part)]
    return pools


def draw_bag(
    pools: Pools, positive: bool, rng: Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Tile indices in random order, and which of them are witnesses."""
    size = int(rng.integers(150, 601))
    n_witness = max(1, round(size * rng.uniform(0.005, 0.03))) if positive else 0
    n_adeno = round((size - n_witness) * rng.uniform(0.0, 0.6))
    counts = {WITNESS: n_witness, ADENO: n_adeno, NORMAL: size - n_witness - n_adeno}
    parts = [rng.choice(pools[name], n, replace=n > len(pools[name])) for name, n in counts.items()]
    tiles = np.concatenate(parts)
    order = rng.permutation(size)
    return tiles[order], (np.arange(size) < n_witness)[order]
