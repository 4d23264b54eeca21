"""Real TCGA slides as a cohort that ``foci`` reads: one .npz per slide, and a tidy table.

The source is one HDF5 file of region features (``features``, ``bag_ptr``, ``slide_id``,
``case_id``, ``site``, ``oncotree``, ``task``); it is given by ``--data`` and never copied here.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from foci.bags import Cohort, Slide
from foci.bags.splits import split_by_patient


def make_cohort(source: Path, task: str, out: Path, seed: int = 0) -> Path:
    """Write ``features/`` and ``cohort.csv`` for ``"lung"`` or ``"brca"``; split by patient."""
    (out / "features").mkdir(parents=True, exist_ok=True)
    slides = []
    with h5py.File(source) as file:
        pointers, x = file["bag_ptr"][()], file["features"][()]
        names = {key: file[key].asstr()[()] for key in ("slide_id", "case_id", "oncotree", "task")}
    for row in np.flatnonzero(names["task"] == task):
        slide_id, case, tree = (names[key][row] for key in ("slide_id", "case_id", "oncotree"))
        label = tree if task == "lung" else "IDC" if tree == "IDC" else "other"
        bag = x[pointers[row] : pointers[row + 1]].astype(np.float32)
        np.savez(out / "features" / f"{slide_id}.npz", features=bag)
        slides.append(Slide(slide_id, case, label))
    split = split_by_patient(slides, fractions=(0.6, 0.15, 0.25), seed=seed)
    Cohort(tuple(split.slides)).to_csv(out / "cohort.csv")
    return out
