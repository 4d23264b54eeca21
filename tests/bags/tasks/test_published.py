"""Folders of published features."""

from pathlib import Path

import pytest

from foci.bags.bag import Slide, SlideRows
from foci.bags.tasks import Source, read_tcga
from foci.errors import CohortError
from tests.bags.tasks.gdc_tables import barcode

FOLDERS = {"TCGA-BRCA_IDC": "IDC", "TCGA-BRCA_OTHERS": "other"}


def read(source: Source) -> SlideRows:
    return read_tcga(source, FOLDERS, {}, "")


def features(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.h5").touch()
    return folder


def test_the_folder_names_the_class(tmp_path: Path) -> None:
    names = (barcode(1), barcode(2), barcode(2, "01A-01-TS1"))
    folder = features(tmp_path / "tcga-brca_idc", *names)
    got = read(Source(folder))
    assert got.slides == tuple(
        Slide(name, name[:12], "IDC", site="05", feature_path=folder / f"{name}.h5")
        for name in names[:2]
    )
    assert got.notes == ("tcga-brca_idc: 1 frozen sections are left out",)


def test_class_folders_inside_a_folder(tmp_path: Path) -> None:
    features(tmp_path / "TCGA-BRCA_OTHERS", barcode(1))
    features(tmp_path / "TCGA-BRCA_IDC", barcode(2))
    features(tmp_path / "TCGA-LUAD", barcode(3))
    got = read(Source(tmp_path))
    assert [(s.case_id, s.label) for s in got.slides] == [
        ("TCGA-05-0002", "IDC"),
        ("TCGA-05-0001", "other"),
    ]


def test_paths_do_not_depend_on_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = features(tmp_path / "TCGA-BRCA_IDC", barcode(1))
    monkeypatch.chdir(folder)
    (slide,) = read(Source(Path())).slides
    assert slide.feature_path == folder / f"{barcode(1)}.h5"
    assert slide.label == "IDC"


def test_the_user_may_name_the_class(tmp_path: Path) -> None:
    folder = features(tmp_path / "mine", barcode(1))
    assert read(Source(folder, "other")).slides[0].label == "other"
    message = "mine: does not tell the class .*TCGA-BRCA_OTHERS.*; write IDC=.*mine or other=.*mine"
    with pytest.raises(CohortError, match=message):
        read(Source(folder))


def test_refusals(tmp_path: Path) -> None:
    idc = features(tmp_path / "TCGA-BRCA_IDC", "C3L-1")
    with pytest.raises(
        CohortError, match="is the folder of IDC, but was given as other; leave out"
    ):
        read(Source(idc, "other"))
    with pytest.raises(CohortError, match="holds no features of diagnostic TCGA slides"):
        read(Source(idc))
