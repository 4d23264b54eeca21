"""torchmil's folder of arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci.bags.bag import Slide, SlideRows
from foci.bags.importers import read_slides
from foci.errors import CohortError


def read(folder: Path, **labels: Any) -> SlideRows:
    (folder / "labels").mkdir(exist_ok=True)
    for bag, label in labels.items():
        np.save(folder / "labels" / f"{bag}.npy", label)
    rows = "".join(f"{bag},{split}\n" for bag, split in (("a", "train"), ("b", "test")))
    (folder / "splits.csv").write_text("bag_name,split\n" + rows)
    return read_slides(folder / "splits.csv")


def test_labels_beside_the_table(tmp_path: Path) -> None:
    got = read(tmp_path, a=np.array([1.0]), b=np.array(0))
    assert got.slides == (
        Slide("a", "a", "1", "train"),
        Slide("b", "b", "0", "test"),
    )
    assert got.notes[0].startswith("the table names no patients: 2 slides count as one patient")


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (np.array([0, 1]), "b.npy: holds 2 values, not one class number; write one whole number"),
        (np.array(0.5), "b.npy: holds 0.5, which is no class number"),
        (np.array(np.nan), "holds nan, which is no class number"),
        (np.array("LUAD"), "is not a readable NumPy file of numbers .*write the label as one num"),
        (np.array([None]), "is not a readable NumPy file of numbers .*without pickle"),
    ],
)
def test_bad_labels(tmp_path: Path, label: Any, message: str) -> None:
    with pytest.raises(CohortError, match=message):
        read(tmp_path, a=1, b=label)


def test_missing_label_file(tmp_path: Path) -> None:
    with pytest.raises(
        CohortError, match=r"labels.b\.npy: does not exist; keep the folder labels/"
    ):
        read(tmp_path, a=1)
