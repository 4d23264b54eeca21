"""Audit folders of somebody else: files that contradict one another, and names that lead away."""

import base64
import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from foci.audits import StoredAudit
from foci.audits.folder import SLIDES, SUMMARY, part_name
from foci.errors import FociError
from foci.exports import export
from foci.exports.tables import read_names
from foci.reports import write_report
from foci.slides.find import INDEX, THUMBNAILS, read_thumbnails
from foci.viewer.slides import Catalogue
from foci.words import decimals
from tests.cli.invoke import Foci
from tests.makers.folders import write_folder

CURVES, RANKINGS = part_name("curves", 0), part_name("rankings", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "audit"
    write_folder(made, {"native": [[9, 8]], "random": [[6, 6]] * 2}, ["A", "B"], ["tumour", None])
    square = with_column("patch_size", lambda n: pa.array([256] * n, pa.int32()))
    change(made / SLIDES, square)
    for axis in "xy":
        change(made / RANKINGS, with_column(axis, lambda n: pa.array(range(0, 256 * n, 256))))
    return made


def change(path: Path, edit: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(edit(pq.read_table(path)), path)


def with_column(name: str, values: Callable[[int], pa.Array]) -> Callable[[pa.Table], pa.Table]:
    return lambda t: t.set_column(t.column_names.index(name), name, values(t.num_rows))


TABLES = {
    "no tiles of a slide": (
        RANKINGS,
        lambda t: t.filter(pc.not_equal(t["slide_id"], t["slide_id"][0])),
        "rankings: has no tiles of ",
    ),
    "a text as score": (
        RANKINGS,
        with_column("score:native", lambda n: pa.array(["x"] * n)),
        r"part-00000.parquet: cannot be read \(0 empty cells of type string, not double\)",
    ),
    "fractions as corners": (
        RANKINGS,
        with_column("x", lambda n: pa.array([0.5] * n)),
        r"part-00000.parquet: cannot be read \(0 empty cells of type double, not int64\)",
    ),
    "another name for a ranking": (
        CURVES,
        with_column("ranking", lambda n: pa.array(["naive"] * n)),
        "ranking native: is in no curve of the audit; run foci audit again with --force",
    ),
    "no count of tiles": (
        SLIDES,
        with_column("n_tiles", lambda n: pa.nulls(n, pa.int32())),
        r"slides.parquet: cannot be read \(column n_tiles has empty cells\)",
    ),
    "a part of an outcome": (
        SLIDES,
        with_column("outcome", lambda n: pa.array([[None]] * n, pa.list_(pa.float64()))),
        r"slides.parquet: cannot be read \(column outcome has empty cells\)",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_contradict_one_another_are_refused(name: str, folder: Path) -> None:
    file, edit, message = TABLES[name]
    change(folder / file, edit)
    audit = StoredAudit.load(folder, accept_changed=True)
    with pytest.raises(FociError, match=message):
        write_report(audit, folder / "report.html")
    assert not (folder / "report.html").exists()


def test_a_ranking_without_scores_is_not_exported(folder: Path, tmp_path: Path) -> None:
    change(folder / RANKINGS, lambda t: t.drop_columns(["score:native", "rank:native"]))
    audit = StoredAudit.load(folder, accept_changed=True)
    with pytest.raises(FociError, match="has no scores of native; run foci audit again"):
        export(audit, tmp_path / "out", ["csv"], audit.curves.slide_ids)


def first_view(summary: dict) -> dict:
    return summary["views"][summary["first_view"]]


NUMBERS = {
    "a band that is too short": (
        lambda s: first_view(s)["native"]["mean_curve"]["mean"].pop(),
        "mean has another length than ks",
    ),
    "a ranking without numbers": (
        lambda s: first_view(s).pop("native"),
        "lists 'native' in rankings or view prediction only",
    ),
    "a chart with a shorter line": (
        lambda s: s["carried"]["lines"]["native"]["share"].pop(),
        "has lines that are not of 256 counts",
    ),
    "a chart with a longer optimum": (
        lambda s: s["carried"].update(minimum=[0.5] * 10),
        "has lines that are not of 256 counts",
    ),
    "a chart without the map": (
        lambda s: s["carried"]["lines"].pop("native"),
        "has no line of 'native'",
    ),
    "no ranking": (lambda s: s["rankings"].clear(), "holds no rankings in the view prediction"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_summary_that_contradicts_itself_is_refused(name: str, folder: Path, foci: Foci) -> None:
    edit, message = NUMBERS[name]
    summary = json.loads((folder / SUMMARY).read_text())
    edit(summary)
    (folder / SUMMARY).write_text(json.dumps(summary))
    line = foci.refused("report", folder, "--accept-changed")
    assert "summary.json: is damaged" in line
    assert message in line


def test_a_chart_at_a_threshold_of_its_own_is_refused(folder: Path, foci: Foci) -> None:
    summary = json.loads((folder / SUMMARY).read_text())
    summary["carried"]["relative"] = 0.123
    (folder / SUMMARY).write_text(json.dumps(summary))
    line = foci.refused("report", folder, "--accept-changed")
    assert "threshold 0.123: was not measured" in line


def test_numbers_of_any_size_are_shown(folder: Path) -> None:
    summary = json.loads((folder / SUMMARY).read_text())
    summary["full_bag"]["auc"] = 1e300
    (folder / SUMMARY).write_text(json.dumps(summary))
    assert write_report(StoredAudit.load(folder, accept_changed=True)).is_file()
    assert decimals(1e300, 1) == f"{int(1e300)}.0"
    assert decimals(math.inf, 1) == "inf"


def test_a_ranking_cannot_name_a_file_outside(folder: Path, tmp_path: Path) -> None:
    odd = "../../../outside"
    rename = {"native": odd, "score:native": f"score:{odd}", "rank:native": f"rank:{odd}"}
    change(
        folder / RANKINGS, lambda t: t.rename_columns([rename.get(c, c) for c in t.column_names])
    )

    def renamed(table: pa.Table) -> pa.Table:
        names = pa.array([rename.get(n, n) for n in table["ranking"].to_pylist()])
        return table.set_column(table.column_names.index("ranking"), "ranking", names)

    change(folder / CURVES, renamed)
    audit = StoredAudit.load(folder, accept_changed=True)
    name = audit.curves.slide_ids[0]
    before = {path for path in tmp_path.rglob("*") if tmp_path / "out" not in path.parents}
    done = export(audit, tmp_path / "out" / "deep" / "deeper", ["geojson"], [name])
    assert [path.parent for path in done.files] == [tmp_path / "out" / "deep" / "deeper"]
    after = {path for path in tmp_path.rglob("*") if tmp_path / "out" not in path.parents}
    assert after - before == {tmp_path / "out"}


def thumbnails(folder: Path, file: str) -> Path:
    """An index of thumbnails whose picture of the first slide is ``file``."""
    place = folder / THUMBNAILS
    place.mkdir(exist_ok=True)
    box = {"x": 0, "y": 0, "width": 9, "height": 9}
    name = StoredAudit.load(folder).curves.slide_ids[0]
    entry = {"file": file, "image": "/slide.tif", "how": "name", "box": box, "mpp": None}
    (place / INDEX).write_text(json.dumps({name: entry}))
    return place


def test_a_thumbnail_is_a_jpeg_in_the_folder(folder: Path, tmp_path: Path) -> None:
    secret = b"a secret of the reader's machine"
    (tmp_path / "secret").write_bytes(secret)
    place = thumbnails(folder, "a.jpg")
    (entry,) = read_thumbnails(folder).values()
    assert entry.jpeg(place) is None
    (place / "a.jpg").write_bytes(secret)
    assert entry.jpeg(place) is None
    (place / "a.jpg").write_bytes(b"\xff\xd8" + secret)
    assert entry.jpeg(place) == b"\xff\xd8" + secret
    assert base64.b64encode(b"\xff\xd8" + secret).decode() in write_report(folder).read_text()
    (place / "a.jpg").rename(tmp_path / "elsewhere.jpg")
    (place / "a.jpg").symlink_to(tmp_path / "elsewhere.jpg")
    assert entry.jpeg(place) is None
    thumbnails(folder, "../../secret")
    assert read_thumbnails(folder) == {}


def test_an_index_of_thumbnails_that_is_a_pipe_is_none(folder: Path) -> None:
    (thumbnails(folder, "a.jpg") / INDEX).unlink()
    os.mkfifo(folder / THUMBNAILS / INDEX)
    assert read_thumbnails(folder) == {}


def test_a_list_of_slides_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FociError, match=r"list: cannot be read .*; give one slide per line"):
        read_names(tmp_path / "list")


def test_a_link_in_place_of_the_exports_is_not_followed(
    folder: Path, tmp_path: Path, foci: Foci
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "exports").symlink_to(tmp_path / "elsewhere")
    line = foci.refused("export", folder, "--to", "csv")
    assert "exports: is a link to another folder; name a folder with --out" in line
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_marks_go_into_a_file_of_their_own(folder: Path, tmp_path: Path) -> None:
    from foci.viewer.marks import MarkBook

    (tmp_path / "profile").write_text("mine\n")
    catalogue = Catalogue(StoredAudit.load(folder))
    first = int(catalogue.tiles(0).order("native")[0])
    mark = {"reader": "r", "slide": 0, "tile": first, "label": "stroma"}
    body = json.dumps(mark).encode()
    (folder / "link.csv").symlink_to(tmp_path / "profile")
    os.mkfifo(folder / "pipe.csv")
    for name in ("link.csv", "pipe.csv"):
        with pytest.raises(FociError, match="is no file of its own; name another with --marks"):
            MarkBook(folder / name).add(catalogue, body)
    with pytest.raises(FociError, match=r"cannot be written \(No such file or directory\)"):
        MarkBook(folder / "none" / "marks.csv").add(catalogue, body)
    assert (tmp_path / "profile").read_text() == "mine\n"
    MarkBook(folder / "marks.csv").add(catalogue, body)
    assert len((folder / "marks.csv").read_text().splitlines()) == 2
