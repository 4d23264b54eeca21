"""What an audit wrote is removed by name; everything else stays."""

from pathlib import Path

import pytest

from foci.audits.run_folder import check_no_links, clear, remove_parts, tidy
from foci.errors import FociError
from foci.files.lock import LOCK
from foci.selectors.saved import FILES

OWN = (
    "slides.parquet", "curves.parquet", "rankings.parquet", "summary.json", "report.html",
    "report-kappa-0.8.html", "report-kappa-1e-05-relative-k-64-label.html", "tables/rankings.csv",
    "parts/native/00000.parquet", "parts/native/123456.parquet",
    *(f"selectors/seed-12/{name}" for name in FILES),
    "selectors/seed-0/selector.safetensors",
)  # fmt: skip
FOREIGN = (
    "manifest.json", "notes.txt", "report.html.bak", "report-mine.html", "tables/mine.csv",
    "parts/native/1.parquet", "parts/native/00000.parquet.txt", "selectors/seed-0/notes.txt",
    "selectors/mine/selector.safetensors", "thumbnails/mine.png",
)  # fmt: skip


def fill(folder: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


def test_own_files_go_and_others_stay(tmp_path: Path) -> None:
    fill(tmp_path, (*OWN, *FOREIGN))
    clear(tmp_path)
    assert files(tmp_path) == set(FOREIGN)


def test_empty_folders_of_an_audit_go_too(tmp_path: Path) -> None:
    fill(tmp_path, OWN)
    clear(tmp_path)
    assert list(tmp_path.iterdir()) == []
    clear(tmp_path)  # nothing to do is no error


def test_only_parts_are_removed(tmp_path: Path) -> None:
    fill(tmp_path, OWN)
    remove_parts(tmp_path)
    assert files(tmp_path) == {name for name in OWN if not name.startswith("parts/")}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere, audit = tmp_path / "elsewhere", tmp_path / "audit"
    fill(elsewhere, ("00000.parquet", "rankings.csv", "selector.safetensors", LOCK))
    (audit / "selectors").mkdir(parents=True)
    (audit / "parts").symlink_to(elsewhere)
    (audit / "tables").symlink_to(elsewhere)
    (audit / "selectors" / "seed-0").symlink_to(elsewhere)
    clear(audit)
    remove_parts(audit)
    tidy(audit)
    assert files(elsewhere) == {"00000.parquet", "rankings.csv", "selector.safetensors", LOCK}


def test_locks_of_fits_that_were_killed_go(tmp_path: Path) -> None:
    fill(tmp_path, tuple(f"selectors/{name}/{LOCK}" for name in ("seed-0", "seed-3", "mine")))
    tidy(tmp_path)
    assert files(tmp_path) == {f"selectors/mine/{LOCK}"}


@pytest.mark.parametrize("place", ["parts", "selectors", "tables", "parts/native"])
def test_a_folder_that_leads_elsewhere_is_refused(place: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    audit = tmp_path / "audit"
    (audit / place).parent.mkdir(parents=True)
    check_no_links(audit)
    (audit / place).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FociError, match=f"{place}: is a link to another folder; remove the link"):
        check_no_links(audit)
