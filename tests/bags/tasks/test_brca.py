"""The breast task."""

from collections import Counter
from pathlib import Path

import pytest

from foci.bags.tasks import build
from foci.errors import CohortError
from tests.bags.tasks.gdc_tables import barcode, sheet_of
from tests.bags.tasks.test_published import features


def test_published_folders(tmp_path: Path) -> None:
    features(tmp_path / "TCGA-BRCA_IDC", *(barcode(k) for k in range(14)))
    features(tmp_path / "TCGA-BRCA_OTHERS", *(barcode(k) for k in range(20, 26)))
    got = build("brca", [str(tmp_path)])
    assert Counter((s.label, s.split) for s in got.slides) == {
        ("IDC", "train"): 9,
        ("IDC", "val"): 2,
        ("IDC", "test"): 3,
        ("other", "train"): 4,
        ("other", "val"): 1,
        ("other", "test"): 1,
    }


def test_a_sheet_per_class(tmp_path: Path) -> None:
    idc = sheet_of(tmp_path / "idc.tsv", "TCGA-BRCA", [1, 2])
    ilc = sheet_of(tmp_path / "ilc.tsv", "TCGA-BRCA", [3])
    got = build("brca", [f"IDC={idc}", f"other={ilc}"], split=False)
    assert [(s.case_id[-1], s.label, s.split) for s in got.slides] == [
        ("1", "IDC", None),
        ("2", "IDC", None),
        ("3", "other", None),
    ]
    assert got.notes == ()


def test_a_sheet_without_histology_is_refused(tmp_path: Path) -> None:
    sheet = sheet_of(tmp_path / "s.tsv", "TCGA-BRCA", [1])
    message = (
        "s.tsv: does not tell the class: the project TCGA-BRCA holds several; give one table per "
        "class, IDC=PATH and other=PATH, or the feature folders TCGA-BRCA_IDC and TCGA-BRCA_OTHERS"
    )
    with pytest.raises(CohortError, match=message):
        build("brca", [str(sheet)])
