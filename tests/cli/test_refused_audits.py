"""An audit whose files were changed, damaged or lost is refused, or its page says so."""

import json
import re
import shutil
from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.errors import FociError
from tests.cli.invoke import Foci
from tests.makers.audits import audit
from tests.makers.cohorts import make_files
from tests.makers.curves import Counts
from tests.makers.folders import write_folder

QUICK = {"rankings": ("native", "random")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audit(make_files(tmp_path_factory.mktemp("whole")), changes=QUICK).folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "audit"))


def change_auc(folder: Path) -> None:
    path = folder / "summary.json"
    summary = json.loads(path.read_text())
    assert summary["full_bag"]["auc"] != 0.123
    summary["full_bag"]["auc"] = 0.123
    path.write_text(json.dumps(summary, indent=2))


def test_a_changed_number_is_not_reported(foci: Foci, folder: Path) -> None:
    change_auc(folder)
    assert foci.refused("report", folder) == (
        f"foci: {folder}: was changed since the audit wrote it: summary.json; copy the folder "
        "again, run foci audit again with --force, or accept it with --accept-changed\n"
    )
    assert not (folder / "report.html").exists()


def test_it_is_reported_with_a_mark_if_that_is_accepted(foci: Foci, folder: Path) -> None:
    change_auc(folder)
    (folder / "tables" / "slides.csv").write_text("mine\n")
    (folder / "tables" / "skipped.csv").unlink()
    done = foci.done("report", folder, "--accept-changed")
    names = ["summary.json", "tables/skipped.csv (missing)", "tables/slides.csv"]
    told = [f"changed since the audit wrote it: {folder / name}" for name in names]
    assert done.out.splitlines()[: len(told)] == told
    page = (folder / "report.html").read_text()
    assert (
        '<p class="notice"> Changed since the audit wrote it: '
        f"{', '.join(names)}. These numbers may not be those of the run.</p>"
    ) in page


def test_an_unchanged_audit_has_no_mark(foci: Foci, folder: Path) -> None:
    (folder / "report.html").write_text("an older report, opened and saved again")
    done = foci.done("report", folder)
    assert f"\nwrote {folder / 'report.html'}\n" in done.out
    assert "changed since" not in done.out
    assert "Changed since" not in (folder / "report.html").read_text()
    assert foci("report", folder, "--accept-changed").out == done.out


def test_a_changed_audit_is_not_compared(foci: Foci, folder: Path, whole: Path) -> None:
    change_auc(folder)
    page = folder.parent / "page.html"
    done = foci.refused("compare", whole, folder, "--out", page)
    assert f"{folder}: was changed since the audit wrote it: summary.json" in done
    assert not page.exists()
    done = foci.done("compare", whole, folder, "--out", page, "--accept-changed")
    assert done.out.startswith(f"changed since the audit wrote it: {folder / 'summary.json'}\n")
    mark = "Changed since the audit wrote it, model (audit): summary.json."
    assert f"note: {mark}" in done.out
    assert f'<li class="synthetic">{mark}</li>' in page.read_text()


@pytest.mark.parametrize(
    "name",
    [
        "slides.parquet",
        "curves/part-00000.parquet",
        "rankings/part-00000.parquet",
        "tables/rankings.csv",
    ],
)
def test_one_bit_of_any_file_is_noticed(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(FociError, match=f"was changed since the audit wrote it: {name};"):
        StoredAudit.load(folder)
    assert StoredAudit.load(folder, accept_changed=True).changed == (name,)


@pytest.mark.parametrize("table", ["curves", "rankings", "measured"])
def test_a_part_that_the_audit_did_not_write_is_noticed(folder: Path, table: str) -> None:
    own = min((folder / table).iterdir())
    shutil.copy(own, own.with_stem("part-mine"))  # no part: nobody reads it
    assert StoredAudit.load(folder).changed == ()
    shutil.copy(own, own.with_stem("part-00099"))
    added = f"{table}/part-00099{own.suffix} (added)"
    with pytest.raises(FociError, match=re.escape(f"since the audit wrote it: {added};")):
        StoredAudit.load(folder)
    assert StoredAudit.load(folder, accept_changed=True).changed == (added,)


def test_the_manifest_itself_is_checked(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"native"', '"norm"', 1))
    with pytest.raises(FociError, match=r"was changed since the audit wrote it: manifest\.json;"):
        StoredAudit.load(folder)


def test_a_folder_without_hashes_opens(folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "files": {}, "own_sha256": None}))
    with pytest.raises(FociError, match=r"manifest\.json"):  # an empty hash is not a missing one
        StoredAudit.load(folder)
    del manifest["files"], manifest["own_sha256"]
    path.write_text(json.dumps(manifest))
    change_auc(folder)
    assert StoredAudit.load(folder).changed == ()


def test_a_finished_audit_is_checked_when_it_is_given_again(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    change_auc(audit(files, changes=QUICK).folder)
    with pytest.raises(FociError, match=r"was changed since the audit wrote it: summary\.json"):
        audit(files, changes=QUICK)
    assert audit(files, changes=QUICK, force=True).changed == ()


READ = {
    "report": ("manifest.json", "summary.json", "slides.parquet",
               "curves/part-00000.parquet", "rankings/part-00000.parquet"),
    "compare": ("manifest.json", "summary.json", "slides.parquet"),
}  # fmt: skip


@pytest.fixture
def unhashed(tmp_path: Path) -> Path:
    """An audit whose manifest has no hashes: damage shows only where a file is read."""
    counts: Counts = {"native": [[9, 8]], "random": [[6, 6]] * 2}
    return write_folder(tmp_path / "unhashed", counts, ["A", "B"], ["tumour", None]).folder


@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command in READ for name in READ[command]]
)
def test_a_damaged_file_is_one_line(foci: Foci, unhashed: Path, command: str, name: str) -> None:
    others = [Path(shutil.copytree(unhashed, "other"))] if command == "compare" else []
    kinds = [None, b"garbage", b"PAR1 cut PAR1", b""] + [b"[]", b"{}"] * name.endswith("json")
    for content in kinds:
        (unhashed / name).unlink(missing_ok=True)
        if content is not None:
            (unhashed / name).write_bytes(content)
        named = name if content is not None else name.split("/")[0]  # parts are found by listing
        assert named in foci.refused(command, unhashed, *others, "--out", "page.html"), content
        assert not Path("page.html").exists()
