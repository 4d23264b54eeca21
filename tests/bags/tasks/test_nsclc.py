"""The lung task."""

from collections import Counter
from pathlib import Path

import pytest

from foci.bags.cohort import check_leakage
from foci.bags.tasks import build
from foci.errors import CohortError
from tests.bags.tasks.gdc_tables import barcode, file_name, manifest, sample_sheet, sheet_of
from tests.bags.tasks.test_published import features


def test_sheet_manifest_and_folder_together(tmp_path: Path) -> None:
    luad = sheet_of(tmp_path / "luad.tsv", "TCGA-LUAD", range(5))
    lusc = manifest(tmp_path / "lusc.txt", [file_name(barcode(k)) for k in range(5, 8)])
    folder = features(tmp_path / "TCGA-LUSC", barcode(8), barcode(9))
    got = build("nsclc", [str(luad), f"lusc={lusc}", str(folder)])
    assert Counter(s.label for s in got.slides) == {"LUAD": 5, "LUSC": 5}
    assert Counter(s.split for s in got.slides) == {"train": 7, "val": 1, "test": 2}
    assert got.notes == (
        "10 slides, where the paper has 1043: its split sizes are scaled to 7/1/2",
    )


def test_the_papers_sizes_are_met_exactly(tmp_path: Path) -> None:
    files = []
    for case in range(1000):
        project = "TCGA-LUAD" if case < 500 else "TCGA-LUSC"
        for slide in ("DX1", "DX2") if case % 500 < 22 - (case >= 500) else ("DX1",):
            code = barcode(case, f"01Z-00-{slide}")
            files.append((file_name(code), project, code[:12]))
    assert len(files) == 1043
    got = build("nsclc", [str(sample_sheet(tmp_path / "s.tsv", files))], seed=3)
    assert Counter(s.split for s in got.slides) == {"train": 729, "val": 105, "test": 209}
    assert got.notes == ()
    check_leakage(got.slides)
    luad = Counter(s.split for s in got.slides if s.label == "LUAD")
    assert luad == {"train": 364, "val": 53, "test": 105}


def test_a_manifest_alone_is_refused(tmp_path: Path) -> None:
    path = manifest(tmp_path / "m.txt", [file_name(barcode(1))])
    with pytest.raises(
        CohortError, match="names no project; give the sample sheet, or write LUAD=P"
    ):
        build("nsclc", [str(path)])
