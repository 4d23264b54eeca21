"""Opening audit folders: finished ones, and those that are refused."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foci.audits import StoredAudit
from foci.audits.folder import CURVES, part_name
from foci.errors import FociError


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
