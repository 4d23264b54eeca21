"""The folder of a run: whose it is, what is removed, and what a refusal leaves."""

import json
from pathlib import Path
from typing import Any

import pytest

from foci.audits import StoredAudit
from foci.audits.folder import MANIFEST, TABLE_FILES, seed_folder
from foci.audits.manifest import state_of
from foci.audits.run_folder import check_no_links, clear, locked_run_folder, remove_receipts, tidy
from foci.errors import FociError
from foci.files.atomic import sweep
from foci.files.hashes import digest
from foci.files.lock import LOCK
from foci.files.run_log import LOG
from foci.selectors.saved import FILES, METADATA
from tests.makers.audits import audit

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


@pytest.mark.parametrize(
    "place", ["tables", "selectors", "selectors/seed-0", "parts", "parts/curves"]
)
def test_force_follows_no_link(tmp_path: Path, place: str) -> None:
    mine = tmp_path / "mine"
    fill(mine, ("rankings.csv", "selector.json", "seed-0/selector.json", "curves/00000.part"))
    before = sorted(mine.rglob("*"))
    out = manifest(tmp_path / "out")
    (out / place).parent.mkdir(exist_ok=True)
    check_no_links(out)
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
    (tmp_path / "slides.parquet").write_text("mine")
    out = manifest(tmp_path / "out")
    (out / "slides.parquet").symlink_to(tmp_path / "slides.parquet")
    with locked_run_folder(out, {"kappa": 0.1}, VERSIONS, force=True):
        assert not (out / "slides.parquet").is_symlink()
    assert (tmp_path / "slides.parquet").read_text() == "mine"


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


OWN = (
    "slides.parquet", "curves/part-00000.parquet", "rankings/part-123456.parquet",
    "measured/part-00000.safetensors", "summary.json", "report.html",
    "report-kappa-0.8.html", "report-kappa-1e-05-relative-k-64-label.html", "report-k-5.html",
    "report-label.html", "report-class.html", "report-prediction.html", "report-relative.html",
    "tables/rankings.csv", "tables/outcome.csv", "tables/deciding_slides.csv",
    "parts/00000.part", "parts/123456.means", "parts/00000.lock", "parts/audited.json",
    *(f"selectors/seed-12/{name}" for name in FILES),
    "selectors/seed-0/selector.safetensors", "selectors/seed-1/fitting.safetensors",
    ".writing-abc", "tables/.writing-def",
)  # fmt: skip
FOREIGN = (
    "manifest.json", "notes.txt", "report.html.bak", "report-mine.html", "report-kappa.html",
    "my-report-k-5.html", "tables/mine.csv", "tables/figure.png",
    "parts/1.part", "parts/00000.part.txt", "parts/mine.part", "curves/mine.parquet",
    "curves/part-1.parquet", "measured/part-00000.parquet",
    "selectors/seed-0/notes.txt", "selectors/seed-old/selector.json",
    "selectors/mine/selector.safetensors", "thumbnails/mine.png",
)  # fmt: skip


def fill(folder: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


def test_own_files_go_and_others_stay(tmp_path: Path) -> None:
    fill(manifest(tmp_path / "out"), (*OWN, *FOREIGN[1:]))
    with locked_run_folder(tmp_path / "out", {"kappa": 0.1}, VERSIONS, force=True) as state:
        assert state == "new"
    assert files(tmp_path / "out") == set(FOREIGN)
    assert not (tmp_path / "out" / "selectors" / "seed-12").exists()
    fill(tmp_path / "all mine", OWN)
    for _ in range(2):  # the second time there is nothing to do
        clear(tmp_path / "all mine")
        assert list((tmp_path / "all mine").iterdir()) == []


def test_only_parts_are_removed(tmp_path: Path) -> None:
    fill(tmp_path, OWN)
    remove_receipts(tmp_path)
    assert files(tmp_path) == {n for n in OWN if not n.startswith("parts/") and ".writing" not in n}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere, audit = tmp_path / "elsewhere", tmp_path / "audit"
    fill(elsewhere, ("00000.parquet", "rankings.csv", "selector.safetensors", LOCK))
    (audit / "selectors").mkdir(parents=True)
    (audit / "parts").symlink_to(elsewhere)
    (audit / "tables").symlink_to(elsewhere)
    (audit / "selectors" / "seed-0").symlink_to(elsewhere)
    clear(audit)
    remove_receipts(audit)
    tidy(audit)
    assert files(elsewhere) == {"00000.parquet", "rankings.csv", "selector.safetensors", LOCK}


def test_locks_of_fits_that_were_killed_go(tmp_path: Path) -> None:
    out = manifest(tmp_path / "out")
    fill(out, tuple(f"selectors/{name}/{LOCK}" for name in ("seed-0", "seed-3", "mine")))
    with locked_run_folder(out, DECIDED, VERSIONS, force=False):
        assert files(out / "selectors") == {f"mine/{LOCK}"}


def refuse(out: Path, *made: Path) -> None:
    with (
        pytest.raises(FociError, match="slide: is bad"),
        locked_run_folder(out, DECIDED, VERSIONS, force=False),
    ):
        for path in (out / MANIFEST, out / LOG, *made):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        raise FociError("slide", "is bad", "fix it")


def test_a_folder_that_the_run_made_goes_and_one_that_was_there_stays(tmp_path: Path) -> None:
    refuse(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    refuse(tmp_path / "old")
    assert list((tmp_path / "old").iterdir()) == []


def test_results_stay_with_their_manifest(tmp_path: Path) -> None:
    for name, kept in {
        "shard": "parts/00000.part",
        "fit": f"{seed_folder(Path(), 0)}/{METADATA}",
    }.items():
        out = tmp_path / name
        refuse(out, out / kept)
        assert (out / kept).exists()
        assert (out / MANIFEST).exists()


def test_an_unfinished_fit_goes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    refuse(out, seed_folder(out, 0) / "fitting.safetensors")
    assert not out.exists()


def test_any_other_end_leaves_what_can_be_resumed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        pytest.raises(KeyboardInterrupt),
        locked_run_folder(out, DECIDED, VERSIONS, force=False),
    ):
        (out / MANIFEST).write_text("{}")
        raise KeyboardInterrupt
    assert (out / MANIFEST).exists()


def test_after_a_refusal_other_settings_need_no_force(files: Path) -> None:
    learned = [files / "features" / f"s{i:02d}.h5" for i in range(9)]
    whole = [path.read_bytes() for path in learned]
    for path in learned:
        path.write_bytes(b"cut")
    with pytest.raises(FociError, match="cohort: no slide can be read"):
        audit(files)
    assert not (files / "out").exists()
    for path, content in zip(learned, whole, strict=True):
        path.write_bytes(content)
    done = audit(files, changes={"kappa": 0.7})
    assert done.summary.kappa == 0.7
    clear(done.folder)
