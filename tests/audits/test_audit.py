"""A finished audit is opened, and recomputed at another threshold, budget or view."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foci.audits import StoredAudit
from foci.audits.audit import recompute
from foci.audits.folder import CURVES, part_name
from foci.errors import FociError
from tests.makers.curves import Counts, Settings, summary_of
from tests.makers.folders import write_folder


def test_a_finished_audit_opens(audited: StoredAudit) -> None:
    again = StoredAudit.load(str(audited.folder))
    assert again.curves.slide_ids == tuple(slide.slide_id for slide in again.slides)
    assert [tiles.slide_id for tiles in again.tiles()] == list(again.curves.slide_ids)
    assert again.skipped == ()
    assert again.answers == again.summary.answers
    assert again.manifest.answers["order"] == again.answers.order.answer


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "has no manifest.json; give the folder of foci audit --out"),
        ("{", r"manifest\.json: cannot be read \(Expecting .*; run foci audit again"),
        ("[]", r"manifest\.json: is damaged \(no JSON object\); run foci audit again"),
        ('{"format": 1, "status": "complete"}', r"manifest\.json: says nothing of 'key'; run"),
        ('{"format": 1, "status": "running"}', "holds an unfinished audit; give the foci audit"),
    ],
)
def test_others_are_refused(tmp_path: Path, text: str | None, says: str) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(FociError, match=says):
        StoredAudit.load(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", "summary.json"])
@pytest.mark.parametrize(
    ("number", "found"),
    [
        (0, "is of format 0"),
        (2, "is of format 2"),
        (3, "is of format 3"),
        ("1", "has no format number"),
        (True, "has no format number"),
        (None, "has no format number"),
    ],
)
def test_another_format_is_refused_in_one_line(
    audited: StoredAudit, tmp_path: Path, name: str, number: object, found: str
) -> None:
    out = shutil.copytree(audited.folder, tmp_path / "out")
    content = json.loads((out / name).read_text())
    del content["format"]
    (out / name).write_text(
        json.dumps(content if number is None else {"format": number, **content})
    )
    with pytest.raises(FociError) as refused:
        _ = StoredAudit.load(out, accept_changed=True).summary
    assert str(refused.value) == (
        f"{out / name}: {found}, this FOCI reads format 1; run foci audit again with --force, or "
        "use the FOCI that wrote it"
    )


@pytest.mark.parametrize(
    "name",
    [
        "summary.json",
        "slides.parquet",
        "curves/part-00001.parquet",
        "rankings/part-00000.parquet",
        "measured/part-00002.safetensors",
        "tables/slides.csv",
    ],
)
def test_a_folder_that_lost_a_file(audited: StoredAudit, tmp_path: Path, name: str) -> None:
    shutil.copytree(audited.folder, tmp_path / "out")
    (tmp_path / "out" / name).unlink()
    with pytest.raises(FociError, match=rf"{name}: is missing; run foci audit again"):
        StoredAudit.load(tmp_path / "out")


def test_objects_show_themselves_in_one_line(audited: StoredAudit) -> None:
    assert repr(audited.curves) == "CurveTable(5 slides; rankings: native, selector, random)"
    assert str(audited.summary) == (
        "Summary(5 slides of 4 patients; rankings: native, selector, random; "
        "map: not assessable; better order: not assessable)"
    )
    assert len(repr(audited.measured())) < 200


def test_a_moved_folder_is_the_same_audit(audited: StoredAudit, tmp_path: Path) -> None:
    shutil.copytree(audited.folder, tmp_path / "moved")
    moved = StoredAudit.load(tmp_path / "moved")
    assert moved.summary == audited.summary
    assert moved.manifest == audited.manifest


def test_a_manifest_that_names_other_classes_than_the_curves(
    audited: StoredAudit, tmp_path: Path
) -> None:
    folder = shutil.copytree(audited.folder, tmp_path / "a")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["classes"] = manifest["classes"][:1]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FociError, match=r"manifest\.json: names 1 classes where the curves have 2"):
        _ = StoredAudit.load(folder, accept_changed=True).curves


def test_a_column_of_the_curves_with_empty_cells(audited: StoredAudit, tmp_path: Path) -> None:
    folder = shutil.copytree(audited.folder, tmp_path / "a")
    table = pq.read_table(folder / part_name(CURVES, 0))
    place = table.column_names.index("n_tiles")
    odd = table.set_column(place, "n_tiles", pa.nulls(len(table), pa.int32()))
    pq.write_table(odd, folder / part_name(CURVES, 0))
    with pytest.raises(FociError, match=r"00000\.parquet: cannot be read \(column n_tiles has"):
        _ = StoredAudit.load(folder, accept_changed=True).curves


# The same audit at another threshold, budget or view


COUNTS: Counts = {
    "native": [[4, None, 8]],
    "selector": [[2, 2, None], [4, 6, 4]],
    "random": [[6, 10, None], [2, 6, 8]],
}
CASES = ["P1", "P1", "P2"]


@pytest.fixture
def audit(tmp_path: Path) -> StoredAudit:
    return write_folder(tmp_path / "audit", COUNTS, CASES, ["tumour", None, "benign"])


def test_nothing_differs(audit: StoredAudit) -> None:
    assert recompute(audit) is audit.summary
    assert recompute(audit, kappa=0.9, k_max=256) is audit.summary


def test_another_threshold_and_budget_are_read_from_the_stored_curves(audit: StoredAudit) -> None:
    before = {p: p.read_bytes() for p in audit.folder.rglob("*") if p.is_file()}
    found = recompute(audit, kappa=0.8, k_max=5)
    want = summary_of(
        COUNTS,
        CASES,
        ["tumour", None, "benign"],
        Settings(kappa=0.8, k_max=5, n_boot=50, kappas=(0.7, 0.8, 0.9, 0.95)),
    )
    assert found.views == want.views
    assert found.answers == want.answers
    assert (found.kappa, found.k_max, found.n_skipped) == (0.8, 5, 1)
    assert {p: p.read_bytes() for p in audit.folder.rglob("*") if p.is_file()} == before


def test_relative_answers_are_added_and_nothing_else_changes(audit: StoredAudit) -> None:
    found = recompute(audit, kappa="relative")
    assert [one.share for one in found.answers.relative] == [0.8, 0.9, 0.95, 0.99]
    assert found.carried.relative == 0.95
    same = {
        "answers": found.answers.model_copy(update={"relative": []}),
        "carried": found.carried.model_copy(update={"relative": None}),
    }
    assert found.model_copy(update=same) == audit.summary


def test_another_view_only_changes_which_stands_first(audit: StoredAudit) -> None:
    assert recompute(audit, view="label") == audit.summary.model_copy(
        update={"first_view": "label"}
    )
    assert recompute(audit, view="label", kappa=0.8).first_view == "label"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"k_max": 300}, "--k-max: is 300, but curves were stored up to 256 tiles; give at most"),
        ({"k_max": 0}, "--k-max: is 0; give 1 or more"),
        ({"kappa": 1.2}, "--kappa: is 1.2; give a confidence between 0 and 1"),
    ],
)
def test_what_curves_cannot_answer(audit: StoredAudit, asked: dict[str, float], says: str) -> None:
    with pytest.raises(FociError) as refused:
        recompute(audit, **asked)  # type: ignore[arg-type]
    assert str(refused.value).startswith(says)


def test_the_label_view_needs_labels(tmp_path: Path) -> None:
    audit = write_folder(tmp_path / "audit", COUNTS, CASES, [None] * 3)
    with pytest.raises(FociError, match="--view label: no audited slide has a label"):
        recompute(audit, view="label")
