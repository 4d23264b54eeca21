"""Which folders may be written into."""

import json
from pathlib import Path
from typing import Any

import pytest

from foci.audits import StoredAudit
from foci.audits.folder import TABLE_FILES
from foci.audits.run_folder import clear, locked_run_folder, state_of
from foci.errors import FociError
from foci.files.atomic import sweep
from foci.files.hashes import digest
from foci.files.lock import LOCK

DECIDED = {"kappa": 0.9, "k_max": 256}
VERSIONS = {"foci": "1", "torch": "2"}


def manifest(folder: Path, status: str = "running", **more: Any) -> Path:
    folder.mkdir(exist_ok=True)
    facts = {"format": 1, "status": status, "key": digest(DECIDED), "run_inputs": DECIDED}
    text = json.dumps({**facts, "versions": VERSIONS, **more})
    (folder / "manifest.json").write_text(text)
    return folder


def test_new_and_empty_folders(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    assert state_of(out, DECIDED, VERSIONS, force=False) == "new"
    assert not out.exists()
    with locked_run_folder(out, DECIDED, VERSIONS, force=False) as state:
        assert state == "new"
        assert [path.name for path in out.iterdir()] == [LOCK]
    for name in (".writing-x", LOCK):  # killed before the first manifest
        (out / name).touch()
    assert state_of(out, DECIDED, VERSIONS, force=False) == "new"
    with locked_run_folder(out, DECIDED, VERSIONS, force=False) as state:
        assert state == "new"
    assert list(out.iterdir()) == []


def test_what_was_started_is_kept(tmp_path: Path) -> None:
    out = manifest(tmp_path / "out")
    for name in ("curves.parquet", ".writing-x"):
        (out / name).touch()
    with locked_run_folder(out, DECIDED, VERSIONS, force=False) as state:
        assert state == "started"
    assert sorted(path.name for path in out.iterdir()) == ["curves.parquet", "manifest.json"]


def test_the_same_audit(tmp_path: Path) -> None:
    out = manifest(tmp_path / "out")
    assert state_of(out, DECIDED, VERSIONS, force=False) == "started"
    manifest(out, "complete", files={"curves.parquet": "ab"})
    with pytest.raises(
        FociError, match=r"holds an audit without its curves\.parquet; give --force"
    ):
        state_of(out, DECIDED, VERSIONS, force=False)
    (out / "curves.parquet").touch()
    assert state_of(out, DECIDED, VERSIONS, force=False) == "finished"
    assert state_of(out, DECIDED, {"torch": "3"}, force=False) == "finished"


def test_another_audit(tmp_path: Path) -> None:
    out = manifest(tmp_path / "out")
    says = "holds an audit with kappa = 0.9, not 0.8; give --force to redo it, or another --out"
    with pytest.raises(FociError, match=says):
        state_of(out, {**DECIDED, "kappa": 0.8}, VERSIONS, force=False)
    with pytest.raises(
        FociError, match="started with torch 2, this is 3; resume it with 2, or give"
    ):
        state_of(out, DECIDED, {**VERSIONS, "torch": "3"}, force=False)


@pytest.mark.parametrize("status", ["running", "complete"])
@pytest.mark.parametrize("number", [0, 2, 3])
def test_an_audit_of_another_format(tmp_path: Path, status: str, number: int) -> None:
    """Neither resumed nor taken for finished, even with the same key; --force redoes it."""
    out = manifest(tmp_path / "out", status, format=number)
    before = (out / "manifest.json").read_bytes()
    with pytest.raises(FociError) as refused:
        state_of(out, DECIDED, VERSIONS, force=False)
    assert str(refused.value) == (
        f"{out / 'manifest.json'}: is of format {number}, this FOCI reads format 1; "
        "give --force to redo it, or another --out, or use the FOCI that wrote it"
    )
    assert (out / "manifest.json").read_bytes() == before
    assert state_of(out, DECIDED, VERSIONS, force=True) == "new"


@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_audit_is_left_alone(tmp_path: Path, force: bool) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FociError, match="is a file; choose another --out"):
        state_of(tmp_path / "file", DECIDED, VERSIONS, force=force)
    with pytest.raises(FociError, match="is not empty and holds no audit; choose another --out"):
        state_of(tmp_path, DECIDED, VERSIONS, force=force)
    for text in ('{"name": "an extension"}', "[1]", "3", "{"):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(FociError, match="is not the manifest of an audit; choose another"):
            state_of(tmp_path, DECIDED, VERSIONS, force=force)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "manifest.json"]


def test_force_removes_what_an_audit_makes_and_nothing_else(tmp_path: Path) -> None:
    out = manifest(tmp_path / "out")
    made = [
        "slides.parquet", "curves.parquet", "rankings.parquet", "summary.json", "report.html",
        "report-kappa-0.8.html", "report-k-5.html", "report-label.html", "report-prediction.html",
        "report-kappa-1e-05-k-128-label.html", "report-relative.html",
        "tables/rankings.csv", "parts/native/00000.parquet", "selectors/seed-0/selector.json",
        "selectors/seed-0/selector.safetensors", "selectors/seed-1/fitting.safetensors",
        ".writing-abc", "tables/.writing-def",
    ]  # fmt: skip
    mine = [
        "notes.txt", "report-final.html", "report-kappa.html", "my-report-k-5.html",
        "tables/figure.png", "tables/mine.csv", "selectors/seed-1/mine.txt",
        "selectors/seed-old/selector.json", "parts/native/notes.txt", "parts/mine.parquet",
    ]  # fmt: skip
    for name in made + mine:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).touch()
    with locked_run_folder(out, {"kappa": 0.1}, VERSIONS, force=True) as state:
        assert state == "new"
    left = sorted(p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file())
    assert left == sorted([*mine, "manifest.json"])
    assert not (out / "selectors" / "seed-0").exists()
    clear(out)
    assert (out / "notes.txt").exists()


@pytest.mark.parametrize("place", ["tables", "selectors", "selectors/seed-0", "parts"])
def test_force_follows_no_link(tmp_path: Path, place: str) -> None:
    mine = tmp_path / "mine"
    for name in ("rankings.csv", "selector.json", "seed-0/selector.json", "native/00000.parquet"):
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text("mine")
    before = sorted(mine.rglob("*"))
    out = manifest(tmp_path / "out")
    (out / place).parent.mkdir(exist_ok=True)
    (out / place).symlink_to(mine)
    says = f"{place}: is a link to another folder; remove the link, or choose another --out"
    with (
        pytest.raises(FociError, match=says),
        locked_run_folder(out, {"kappa": 0.1}, VERSIONS, force=True),
    ):
        pass
    clear(out)
    assert sorted(mine.rglob("*")) == before
    assert (out / place).is_symlink()


def test_a_linked_file_loses_its_link_only(tmp_path: Path) -> None:
    (tmp_path / "curves.parquet").write_text("mine")
    out = manifest(tmp_path / "out")
    (out / "curves.parquet").symlink_to(tmp_path / "curves.parquet")
    with locked_run_folder(out, {"kappa": 0.1}, VERSIONS, force=True):
        assert not (out / "curves.parquet").is_symlink()
    assert (tmp_path / "curves.parquet").read_text() == "mine"


def test_locks_of_killed_fits_are_swept(tmp_path: Path) -> None:
    out = manifest(tmp_path / "out")
    (out / "selectors" / "seed-0").mkdir(parents=True)
    (out / "selectors" / "seed-0" / LOCK).touch()
    with locked_run_folder(out, DECIDED, VERSIONS, force=False):
        assert not (out / "selectors" / "seed-0" / LOCK).exists()


def test_the_tables_are_known_by_name(audited: StoredAudit) -> None:
    written = sorted(path.name for path in (audited.folder / "tables").iterdir())
    assert written == sorted(TABLE_FILES)
    assert sorted(audited.manifest.files) == sorted(
        path.relative_to(audited.folder).as_posix()
        for path in audited.folder.rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "foci.log")
    )


def test_sweeping_takes_half_written_files_only(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    for name in (".writing-a", "tables/.writing-b", "tables/kept.csv", ".hidden"):
        (tmp_path / name).touch()
    sweep(tmp_path, deep=True)
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == [".hidden", "kept.csv"]
