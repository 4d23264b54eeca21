"""What the doctor says of good and bad folders."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci.bags.cohort import CohortOptions
from foci.bags.doctor import Check, examine
from foci.progress import showing
from tests.makers import features as write


@pytest.fixture
def features(tmp_path: Path) -> Path:
    for i in range(24):
        path = tmp_path / "features" / f"s{i:02d}.h5"
        write.trident(path, write.features(seed=i), write.grid())
    return tmp_path / "features"


def table(folder: Path, rows: list[str]) -> Path:
    path = folder.parent / "labels.csv"
    path.write_text("slide_id,case_id,label,split\n" + "\n".join(rows) + "\n")
    return path


def rows(n: int = 24) -> list[str]:
    return [f"s{i:02d},c{i},{'ab'[i % 2]},{'train' if i < 12 else 'test'}" for i in range(n)]


def checked(
    features: Path,
    labels: Path | None = None,
    *,
    sample: int | None = None,
    **options: Any,
) -> list[Check]:
    cohort = CohortOptions(features=features, labels=labels, **options)
    return examine(cohort, sample=sample)


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_a_good_cohort(features: Path) -> None:
    checks = checked(features, table(features, rows()))
    statuses = {check.name: check.status for check in checks}
    assert statuses.pop("classes") == "WARN"
    assert set(statuses.values()) == {"PASS"}
    assert set(statuses) == {
        "files", "empty bags", "NaN or Inf", "layout", "width", "tiles", "coordinates",
        "labels", "matching", "leakage",
    }  # fmt: skip
    found = by_name(checks)
    assert found["layout"].detail == "24 trident; encoder 24 uni_v2"
    assert found["classes"].detail == "train: 6 a, 6 b; test: 6 a, 6 b"
    assert found["tiles"].detail == "12 to 12 tiles, median 12"


def test_bad_files_are_told_apart(features: Path) -> None:
    (features / "s00.h5").write_bytes(b"cut")
    write.trident(features / "s01.h5", np.zeros((0, 6), np.float32), np.zeros((0, 2)))
    write.trident(features / "s02.h5", np.full((3, 6), np.nan), write.grid(3))
    write.trident(features / "s03.h5", write.features(12, 9), write.grid())
    crowded = write.grid()
    crowded[1] = crowded[0]
    write.trident(features / "s04.h5", write.features(), crowded)
    jitter = np.stack([np.arange(12) * 251 + np.arange(12) ** 2, np.zeros(12)], 1)
    write.trident(features / "s05.h5", write.features(), jitter)

    checks = checked(features)

    found = {(c.name, c.status): c for c in checks}
    assert "first: " in found["files", "FAIL"].detail
    assert "s00.h5: is not an HDF5 file" in found["files", "FAIL"].detail
    assert found["empty bags", "WARN"].detail == "1 slide (s01)"
    assert found["NaN or Inf", "FAIL"].detail == "1 slide (s02)"
    assert found["width", "FAIL"].detail == "features are 6 wide, but not in 1 slide (s03)"
    details = [c.detail for c in checks if c.name == "coordinates"]
    assert details == ["not on a grid in 1 slide (s05)", "two tiles at one place in 1 slide (s04)"]
    assert all(c.fix for c in checks if c.status != "PASS")


def test_coordinates_of_another_order_than_features(tmp_path: Path) -> None:
    x, places = write.features(), write.grid()
    write.clam_h5(tmp_path, "s", x, places)
    write.clam_pt(tmp_path, "s", x[::-1].copy())
    found = checked(tmp_path / "features" / "pt_files")
    first, second = [check for check in found if check.name == "coordinates"]
    assert first.status == second.status == "WARN"
    assert first.detail.startswith("of another order than features in 1 slide (s); first: s.h5")
    assert second.detail == "missing in 1 slide (s)"


def test_missing_coordinates_and_mixed_layouts(features: Path) -> None:
    np.savez(features / "plain.npz", features=write.features())
    found = by_name(checked(features))
    assert found["coordinates"].detail == "missing in 1 slide (plain)"
    layout = found["layout"]
    assert (layout.status, layout.detail) == ("WARN", "24 trident, 1 npz; encoder 24 uni_v2")


def test_sampling_reads_fewer_files(features: Path) -> None:
    seen: list[str] = []

    def watch(names, what):  # type: ignore[no-untyped-def]
        seen.extend(names)
        return seen

    with showing(watch):
        checks = checked(features, sample=3)
    assert seen == ["s00", "s11", "s23"]
    assert by_name(checks)["files"].detail == "3 of 24 files read"


@pytest.mark.parametrize(
    ("change", "name", "status", "says"),
    [
        (lambda r: [*r[:23], "s23,c0,b,test"], "leakage", "FAIL", "c0"),
        (lambda r: r[:20], "matching", "WARN", "not in the table: 4 slides (s20, s21, s22, ...)"),
        (lambda r: [*r, "s99,c99,a,test"], "matching", "WARN", "no features for 1 slide (s99)"),
        (lambda r: [x.replace(",b,test", ",a,test") for x in r], "classes", "FAIL", "in test"),
        (lambda r: [*r, r[0]], "labels", "FAIL", "s00"),
        (lambda r: [f"x{x}" for x in r], "matching", "FAIL", "no features for 24 slides"),
    ],
)
def test_bad_tables(features: Path, change, name: str, status: str, says: str) -> None:  # type: ignore[no-untyped-def]
    check = by_name(checked(features, table(features, change(rows()))))[name]
    assert check.status == status
    assert says in check.detail
    assert check.fix


def test_paths_of_the_table_are_examined(features: Path) -> None:
    other = features.parent / "other"
    features.rename(other)
    write.trident(features / "spare.h5", write.features(), write.grid())
    (features / "bad.h5").write_bytes(b"cut")
    labels = features.parent / "labels.csv"
    lines = [f"{row},other/{row[:3]}.h5" for row in rows()]

    def found() -> dict[str, Check]:
        labels.write_text("slide_id,case_id,label,split,feature_path\n" + "\n".join(lines) + "\n")
        return by_name(checked(features, labels))

    good = found()
    assert (good["files"].status, good["files"].detail) == ("PASS", "24 files read")
    (other / "s03.h5").write_bytes(b"cut")
    assert "s03.h5: is not an HDF5 file" in found()["files"].detail
    lines[0] = lines[0].replace("other/", "gone/")
    partly = found()["matching"]
    assert partly.status == "WARN"
    assert "no features for 1 slide (s00); first: its feature_path " in partly.detail
    lines = [line.replace("other/", "gone/") for line in lines]
    lost = found()["matching"]
    assert (lost.status, lost.fix[-13:]) == ("FAIL", " feature_path")
    assert "no features for 24 slides" in lost.detail


def test_slides_in_no_split_are_called_so(features: Path) -> None:
    some = [r.replace("train", "") if r < "s06" and ",a," in r else r for r in rows()]
    check = by_name(checked(features, table(features, some)))["classes"]
    assert check.status == "WARN"
    assert check.detail == "no split: 3 a; train: 6 b, 3 a; test: 6 a, 6 b"
    bare = [r.rsplit(",", 1)[0] + "," for r in rows()]
    check = by_name(checked(features, table(features, bare)))["classes"]
    assert check.detail == "all slides: 12 a, 12 b"


def test_splits_without_labels(features: Path) -> None:
    splits = features.parent / "splits_0.csv"
    splits.write_text("train,test\ns00,s01\ns02,s03\n")
    found = by_name(checked(features, splits=splits))
    assert found["splits"].detail.startswith("4 slides in splits_0.csv; there is no label table")
    assert found["leakage"].detail == "24 patients, none in two splits"
    refused = by_name(checked(features, fold=1))["labels"]
    assert (refused.status, refused.detail) == ("FAIL", "--fold 1: needs --labels")


def test_an_unlabelled_slide_is_a_warning(features: Path) -> None:
    gaps = [rows()[0].replace(",a,", ",,"), *rows()[1:]]
    found = by_name(checked(features, table(features, gaps)))
    assert (found["unlabelled"].status, found["unlabelled"].detail) == ("WARN", "1 slide (s00)")
    assert found["labels"].status == "PASS"


def test_no_folder(tmp_path: Path) -> None:
    (check,) = checked(tmp_path / "gone")
    assert (check.name, check.status) == ("files", "FAIL")
