"""A classic MIL set as a cohort that ``foci`` reads: one .npz per bag, and a tidy table.

The source is one .npz file with ``NAME_X`` (instances), ``NAME_bag`` (their bag) and ``NAME_y``
(label of a bag, repeated for its instances); it is given by ``--data`` and never copied here.
Features are scaled to zero mean and unit spread over the training bags.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from foci.bags import Cohort, Slide
from foci.bags.cohort.splits import split_by_patient

SETS = ("ucsb_breast_cancer", "musk2", "elephant")
"""Bags of the other sets hold five to seven instances; of Elephant, too, which stands for them."""


def main() -> None:
    """Make the cohorts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for name in SETS:
        print(make_cohort(options.data, name, options.out / name))


def make_cohort(source: Path, name: str, out: Path, seed: int = 0) -> Path:
    """Write ``features/`` and ``cohort.csv``; bags are split at random, each its own patient."""
    with np.load(source) as stored:
        x, bag, y = (stored[f"{name}_{key}"] for key in ("X", "bag", "y"))
    numbers = np.unique(bag)
    labels = ["positive" if y[bag == n][0] > 0 else "negative" for n in numbers]
    names = [f"{name}-{n:03d}" for n in numbers]
    slides = [Slide(one, one, label) for one, label in zip(names, labels, strict=True)]
    split = split_by_patient(slides, fractions=(0.6, 0.15, 0.25), seed=seed)
    learned = {slide.slide_id for slide in split.slides if slide.split == "train"}
    rows = np.isin(bag, [n for n, one in zip(numbers, names, strict=True) if one in learned])
    centre, spread = x[rows].mean(axis=0), x[rows].std(axis=0)
    scaled = ((x - centre) / np.where(spread > 0, spread, 1)).astype(np.float32)
    (out / "features").mkdir(parents=True, exist_ok=True)
    for n, one in zip(numbers, names, strict=True):
        np.savez(out / "features" / f"{one}.npz", features=scaled[bag == n])
    Cohort(tuple(split.slides)).to_csv(out / "cohort.csv")
    return out


if __name__ == "__main__":
    main()
