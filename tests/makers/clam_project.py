"""A project folder as CLAM's users have it: more slides, patients and classes than the task needs.

``features/h5_files``, ``dataset_csv/lung.csv`` (ids end in ``.svs``, the label is called
``oncotree_code``, three classes), ``splits/task_2/splits_0.csv`` ... with slides that are not in
the table and patients whose slides are in two splits, and ``maps/gradcam.csv``, a heat map.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.makers import features as write

D_IN = 16
CLASSES = ("LUAD", "LUSC", "normal")
LABEL_COLUMN = "oncotree_code"
PER_CLASS = {"train": 8, "val": 3, "test": 7}
OVERLAPPING = ("TCGA-01-0000", "TCGA-02-0000")
"""The first patients of LUAD and LUSC: one slide in train, one in test."""
EXTRA = 5
"""Slides of every fold that are not in the table."""


@dataclass(frozen=True)
class ProjectSlide:
    """One row of the table: patient, slide and class, and its split in fold 0."""

    case: str
    name: str
    label: str
    split: str


def make_clam_project(root: Path) -> list[ProjectSlide]:
    """Write the project; returns the slides of its table."""
    slides = _slides()
    rng = np.random.default_rng(5)
    heat = [("slide_id", "tile", "score")]
    for slide in slides:
        n, column = int(rng.integers(6, 12)), CLASSES.index(slide.label)
        x = rng.normal(size=(n, D_IN)).astype(np.float32)
        witness = int(rng.integers(n))
        x[witness, column] += 8
        write.clam_h5(root, slide.name, x, write.grid(n))
        heat += [(slide.name, str(i), str(float(i == witness))) for i in range(n)]
    _write(
        root / "dataset_csv" / "lung.csv",
        [("case_id", "slide_id", LABEL_COLUMN, "age")]
        + [(s.case, f"{s.name}.svs", s.label, str(40 + i)) for i, s in enumerate(slides)],
    )
    _write(root / "maps" / "gradcam.csv", heat)
    for fold in range(3):
        _write_fold(root / "splits" / "task_2", fold, slides)
    return slides


def _slides() -> list[ProjectSlide]:
    slides = []
    for site, label in enumerate(CLASSES, 1):
        splits = [split for split, n in PER_CLASS.items() for _ in range(n)]
        for i, split in enumerate(splits):
            case = f"TCGA-{site:02d}-{i:04d}"
            slides.append(ProjectSlide(case, f"{case}-01Z-00-DX1", label, split))
        if label != "normal":
            case = f"TCGA-{site:02d}-0000"
            slides.append(ProjectSlide(case, f"{case}-01Z-00-DX2", label, "test"))
    return slides


def _write_fold(folder: Path, fold: int, slides: Sequence[ProjectSlide]) -> None:
    """CLAM's three files of a fold; train and test change places in odd folds."""
    swap = {"train": "test", "test": "train", "val": "val"} if fold % 2 else {}
    named: dict[str, list[str]] = {split: [] for split in PER_CLASS}
    for slide in slides:
        named[swap.get(slide.split, slide.split)].append(slide.name)
    named["train"] += [f"TCGA-09-{i:04d}-01Z-00-DX1" for i in range(EXTRA)]
    longest = max(map(len, named.values()))
    rows = [
        [names[i] if i < len(names) else "" for names in named.values()] for i in range(longest)
    ]
    _write(
        folder / f"splits_{fold}.csv",
        [("", *named), *((str(i), *row) for i, row in enumerate(rows))],
    )
    _write(
        folder / f"splits_{fold}_bool.csv",
        [("", *named)]
        + [
            (name, *(str(split == own) for own in named))
            for split in named
            for name in named[split]
        ],
    )
    _write(
        folder / f"splits_{fold}_descriptor.csv",
        [("", *named), *((label, *map(str, PER_CLASS.values())) for label in CLASSES)],
    )


def _write(path: Path, rows: Sequence[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
