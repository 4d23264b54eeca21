"""Patho-Bench's k=all.tsv."""

from pathlib import Path

import pytest

from foci.bags.bag import Slide, SlideRows
from foci.bags.importers import read_slides
from foci.errors import CohortError

TABLE = """case_id slide_id ER_status fold_0 fold_1 fold_10
p1 001 pos train test train
p2 002 neg test train
p3 003 neg train train test
"""


def read(
    folder: Path, text: str = TABLE, label_column: str | None = None, fold: int | None = None
) -> SlideRows:
    path = folder / "k=all.tsv"
    rows = [line.split(" ") for line in text.splitlines()]
    path.write_text("\n".join("\t".join([*row, ""][: len(rows[0])]) for row in rows))
    return read_slides(path, label_column=label_column, fold=fold)


def test_first_fold_by_default(tmp_path: Path) -> None:
    got = read(tmp_path)
    assert got.slides == (
        Slide("001", "p1", "pos", "train"),
        Slide("002", "p2", "neg", "test"),
        Slide("003", "p3", "neg", "train"),
    )
    assert got.notes == ("fold 0 of 3 is used",)


def test_another_fold_with_a_gap(tmp_path: Path) -> None:
    got = read(tmp_path, fold=10)
    assert [s.split for s in got.slides] == ["train", None, "test"]
    assert got.notes == ()


def test_label_column_among_several(tmp_path: Path) -> None:
    text = "case_id slide_id er pr fold_0\np 1 a b val\n"
    assert read(tmp_path, text, label_column="pr").slides == (Slide("1", "p", "b", "val"),)
    with pytest.raises(CohortError, match=r"may be the label \(er, pr\); name it with --label-"):
        read(tmp_path, text)
    with pytest.raises(CohortError, match=r"no column 'prr' .* rename 'pr' to 'prr', or name anot"):
        read(tmp_path, text, label_column="prr")


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match=r"k=all.tsv: has no fold 2 \(it has 0, 1, 10\); choose"):
        read(tmp_path, fold=2)
    with pytest.raises(CohortError, match="has no label column; add one"):
        read(tmp_path, "case_id slide_id fold_0\np 1 train\n")
    with pytest.raises(CohortError, match="has no column 'case_id'"):
        read(tmp_path, "slide_id er fold_0\n1 a train\n")
    with pytest.raises(CohortError, match="line 3: slide '1' is already in line 2"):
        read(tmp_path, "case_id slide_id er fold_0\np 1 a train\np 1 a train\n")
